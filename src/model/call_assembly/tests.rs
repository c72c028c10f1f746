use proptest::prelude::*;

use super::*;

fn fragment<'a>(number: Option<u64>, id: &'a str, name: &'a str, arguments: &'a str) -> CallFragment<'a> {
    CallFragment { number, id, name, arguments }
}

fn put_together(fragments: &[CallFragment<'_>]) -> Vec<String> {
    let mut calls = CallAssembly::default();
    fragments.iter().for_each(|fragment| calls.add(*fragment));
    calls.calls().iter().map(|call| format!("{}:{}{}", call.id, call.name, call.arguments)).collect()
}

#[test]
fn the_calls_of_every_kind_of_server_are_told_apart() {
    let two = ["a:file_read{\"path\":\"x\"}", "b:file_read{\"path\":\"y\"}"];
    let (x, y) = (r#"{"path":"x"}"#, r#"{"path":"y"}"#);
    // As OpenAI sends them, even with their fragments mixed.
    let openai = [
        fragment(Some(0), "a", "file_read", ""),
        fragment(Some(0), "", "", "{\"path\""),
        fragment(Some(1), "b", "file_read", ""),
        fragment(Some(0), "", "", ":\"x\"}"),
        fragment(Some(1), "", "", y),
    ];
    assert_eq!(put_together(&openai), two);
    // Every call has the same number, or none.
    for number in [Some(0), None] {
        let same = [fragment(number, "a", "file_read", x), fragment(number, "b", "file_read", y)];
        assert_eq!(put_together(&same), two);
        let nameless = [fragment(number, "", "file_read", x), fragment(number, "", "file_read", y)];
        assert_eq!(put_together(&nameless), [&two[0][1..], &two[1][1..]]);
    }
    // Id and name come with every fragment, and once more at the end.
    let repeated = [
        fragment(Some(0), "a", "file_read", "{\"path\""),
        fragment(Some(0), "a", "file_read", ":\"x\"}"),
        fragment(Some(0), "a", "file_read", ""),
        fragment(Some(1), "b", "file_", ""),
        fragment(Some(1), "b", "read", y),
    ];
    assert_eq!(put_together(&repeated), two);
    // The second arrives before the first.
    let swapped = [fragment(Some(1), "b", "file_read", y), fragment(Some(0), "a", "file_read", x)];
    assert_eq!(put_together(&swapped), two);
    assert_eq!(put_together(&[fragment(Some(u64::MAX), "", "", "")]), [""; 0], "nothing was said");
}

#[test]
fn a_whole_call_takes_the_place_of_its_fragments() {
    let mut calls = CallAssembly::default();
    calls.add(fragment(Some(3), "", "file_read", "{\"pa"));
    calls.whole(fragment(Some(3), "a", "file_read", "{}"));
    calls.whole(fragment(Some(4), "b", "file_list", "{}"));
    let calls: Vec<_> = calls.calls().into_iter().map(|call| call.id).collect();
    assert_eq!(calls, ["a", "b"]);
}

proptest! {
    /// However the arguments are cut, and in whatever order the fragments of different calls come.
    #[test]
    fn fragments_make_the_calls_that_were_sent(
        sent in proptest::collection::vec(("[a-z]{1,8}", any::<String>(), 1usize..9), 1..12),
        dice in any::<u64>(),
    ) {
        let wanted: Vec<NativeCall> = sent
            .iter()
            .enumerate()
            .map(|(at, (name, content, _))| NativeCall {
                id: format!("id-{at}"),
                name: name.clone(),
                arguments: serde_json::json!({ "content": content }).to_string(),
            })
            .collect();
        // The fragments of each call in order, those of different calls mixed.
        let mut left: Vec<(usize, Vec<String>)> = wanted
            .iter()
            .zip(&sent)
            .map(|(call, (_, _, size))| {
                let letters: Vec<char> = call.arguments.chars().collect();
                letters.chunks(*size).map(String::from_iter).rev().collect()
            })
            .enumerate()
            .collect();
        let mut calls = CallAssembly::default();
        for (at, call) in wanted.iter().enumerate() {
            calls.add(fragment(Some(at as u64), &call.id, &call.name, ""));
        }
        let mut dice = dice;
        while !left.is_empty() {
            dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let pick = (dice >> 33) as usize % left.len();
            match left[pick].1.pop() {
                Some(piece) => calls.add(fragment(Some(left[pick].0 as u64), "", "", &piece)),
                None => _ = left.remove(pick),
            }
        }
        prop_assert_eq!(calls.calls(), wanted);
    }

    /// Hostile fragments: nothing is lost but what was empty, nothing is made up.
    #[test]
    fn no_fragment_is_lost_or_made_up(
        sent in proptest::collection::vec((proptest::option::of(0u64..4), "[ab]?", "[xy]?", "[{}\\\\\"\\[\\]z]{0,6}"), 0..40),
    ) {
        let mut calls = CallAssembly::default();
        for (number, id, name, arguments) in &sent {
            calls.add(fragment(*number, id, name, arguments));
        }
        let calls = calls.calls();
        let given: usize = sent.iter().map(|(.., arguments)| arguments.len()).sum();
        prop_assert_eq!(calls.iter().map(|call| call.arguments.len()).sum::<usize>(), given);
        prop_assert!(calls.len() <= sent.len());
    }
}
