use proptest::prelude::*;

use super::*;

fn heard(token: &str, pieces: &[&[u8]]) -> (String, Option<i32>) {
    let (all, ended) = said_to(Listener::new(token), pieces);
    (String::from_utf8_lossy(&all).into_owned(), ended.map(|ended| ended.code))
}

fn said_to<'a>(
    mut listener: Listener,
    pieces: impl IntoIterator<Item = &'a (impl AsRef<[u8]> + ?Sized + 'a)>,
) -> (Vec<u8>, Option<Ended>) {
    let mut all = Vec::new();
    for piece in pieces {
        let heard = listener.hear(piece.as_ref());
        all.extend(heard.output);
        if heard.ended.is_some() {
            return (all, heard.ended);
        }
    }
    (all, None)
}

#[test]
fn the_output_lies_between_the_marks() {
    let said = b"$ printf '\\036%s<\\036' t1; eval ...\r\n\x1et1<\x1ehello\r\n\x1et1>3\x1e$ ";
    assert_eq!(heard("t1", &[said]), ("hello\r\n".into(), Some(3)));
}

#[test]
fn marks_may_come_in_pieces_and_other_tokens_are_output() {
    let said: &[&[u8]] = &[b"junk\x1et", b"1<", b"\x1ea\x1et2>9\x1e", b"b\x1e", b"t1", b">1", b"27\x1e"];
    assert_eq!(heard("t1", said), ("a\u{1e}t2>9\u{1e}b".into(), Some(127)));
}

#[test]
fn a_command_that_the_shell_could_not_read_ends_as_well() {
    assert_eq!(heard("t1", &[b"sh: syntax error\n\x1et1>2\x1e"]), (String::new(), Some(2)));
}

#[test]
fn a_false_mark_hides_no_true_one() {
    let said = b"\x1et1<\x1eout\x1et1>x\x1e\x1et1>99999999999\x1e\x1et1?1\x1e\x1et1>1\x1e";
    let output = "out\u{1e}t1>x\u{1e}\u{1e}t1>99999999999\u{1e}\u{1e}t1?1\u{1e}";
    assert_eq!(heard("t1", &[said]), (output.into(), Some(1)));
}

#[test]
fn a_shell_that_gives_up_a_command_comes_to_the_fallback_line() {
    let mut listener = Listener::new("t1");
    listener.fallback_typed();
    let said = format!("\x1et1<\x1ehalf\r\n$ {}\x1et1=130\x1e$ ", fallback("t1").replace('\n', "\r\n"));
    let (output, ended) = said_to(listener, said.as_bytes().chunks(3));
    assert_eq!(String::from_utf8_lossy(&output), "half\r\n$ ");
    assert_eq!(ended, Some(Ended { code: 130, gave_up: true }));
}

#[test]
fn what_is_held_back_comes_when_the_terminal_closes() {
    let mut listener = Listener::new("t1");
    listener.fallback_typed();
    let heard = listener.hear(b"\x1et1<\x1eend\x1et1 printf");
    assert_eq!([heard.output, listener.finish()].concat(), b"end\x1et1 printf");
    let mut unbegun = Listener::new("t1");
    unbegun.hear(b"$ \x1et1");
    assert!(unbegun.finish().is_empty());
}

#[test]
fn what_is_typed_holds_no_mark_and_no_long_line() {
    let typed = fallback("t1") + &script("t1", &"echo '\t!$x \u{1e}t1>0\u{1e}'\n".repeat(100));
    assert!(!typed.bytes().any(|byte| byte == MARK || byte == b'\t'));
    assert!(typed.lines().all(|line| line.len() < 1100), "{typed}");
}

#[test]
fn real_shells_run_what_is_typed() {
    for shell in ["sh", "bash"] {
        for (command, output, code) in [
            ("echo 'a b'; echo \"c\td\"", "a b\nc\td\n", 0),
            ("printf 'x\\ny'; (exit 5)", "x\ny", 5),
            ("cat <<E\nheld $((1+1))\nE", "held 2\n", 0),
            ("cat; false", "", 1),
            ("if then", "", 2),
            // A shell may give up the command here, and must not give up the line.
            (
                ". /nonexistent || echo none",
                if shell == "sh" { "" } else { "none\n" },
                if shell == "sh" { 2 } else { 0 },
            ),
        ] {
            let run = std::process::Command::new(shell).arg("-c").arg(script("t1", command)).output().unwrap();
            let (said, ended) = heard("t1", &[&run.stdout]);
            assert_eq!((said.as_str(), ended), (output, Some(code)), "{shell}: {command}");
        }
    }
}

proptest! {
    #[test]
    fn whatever_the_pieces_the_output_is_the_same(
        output in proptest::collection::vec(prop_oneof![Just(MARK), any::<u8>(), Just(b't'), Just(b'1')], 0..60),
        size in 1usize..20,
    ) {
        let closing = b"\x1et1>7\x1e";
        prop_assume!(find(&output, b"\x1et1>").is_none());
        let said = [b"$ \x1et1<\x1e", output.as_slice(), closing].concat();
        let (all, ended) = said_to(Listener::new("t1"), said.chunks(size));
        prop_assert_eq!(ended, Some(Ended { code: 7, gave_up: false }));
        prop_assert_eq!(all, output);
    }

    #[test]
    fn the_echo_of_the_fallback_line_is_no_output_wherever_it_lands(
        output in proptest::collection::vec(prop_oneof![Just(MARK), any::<u8>(), Just(b' '), Just(b'p')], 0..60),
        at in 0usize..61,
        size in 1usize..50,
    ) {
        prop_assume!(find(&output, b"\x1et1").is_none());
        let echo = fallback("t1").replace('\n', "\r\n");
        let (before, after) = output.split_at(at.min(output.len()));
        let said = [b"$ \x1et1<\x1e", before, echo.as_bytes(), after, b"\x1et1>7\x1e$ "].concat();
        let mut listener = Listener::new("t1");
        listener.fallback_typed();
        let (all, ended) = said_to(listener, said.chunks(size));
        prop_assert_eq!(ended, Some(Ended { code: 7, gave_up: false }));
        prop_assert_eq!(all, output);
    }
}
