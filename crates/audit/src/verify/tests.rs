use proptest::prelude::*;

use super::*;
use crate::{Chain, Record};

fn key(seed: u8) -> AuditKey {
    AuditKey::from_seed(&[seed; 32]).unwrap()
}

/// A log of so many lines, with checkpoints, and its chain.
fn log(count: u64) -> (Vec<String>, Chain) {
    let (key, mut chain) = (key(1), Chain::default());
    let mut lines = vec![chain.append(&Record::new(0, "key").with("public", key.public()))];
    for n in 1..count {
        lines.push(match n % 10 {
            9 => chain.seal(&key, n),
            _ => chain.append(&Record::new(n, "call").with("service", "memory").with("operation", n)),
        });
    }
    (lines, chain)
}

fn verdict(lines: &[String], head: Head) -> Verdict {
    let key = key(1);
    let mut verification = Verification::new(None, None, Vec::new());
    lines.iter().for_each(|line| verification.take(line));
    verification.end(Some((head, &key.authenticate(&head))), Some(&key))
}

#[test]
fn lines_have_one_form() {
    let mut chain = Chain::default();
    let record = Record::new(7, "denied").with("principal", "agent:ada").with("seq", 99).with("path", "/a\"b\n");
    let line = chain.append(&record);
    let zeros = "0".repeat(64);
    assert_eq!(
        line,
        format!(r#"{{"seq":1,"prev":"{zeros}","at_ms":7,"kind":"denied","principal":"agent:ada","path":"/a\"b\n"}}"#)
    );
    let long = chain.append(&Record::new(8, "call").with("path", "x".repeat(5000)));
    assert!(long.contains(r#""path":{"sha256":""#) && long.contains(r#""bytes":5000"#), "{long}");
    assert!(long.contains(&Hash::of(line.as_bytes()).to_string()));
}

#[test]
fn an_untouched_log_is_intact() {
    let (lines, chain) = log(100);
    assert_eq!(verdict(&lines, chain.head()), Verdict::Intact { lines: 100, head: chain.head(), cut: None });
    assert_eq!(
        verdict(&[], Chain::default().head()),
        Verdict::Intact { lines: 0, head: Chain::default().head(), cut: None }
    );
}

#[test]
fn any_line_that_is_changed_removed_moved_or_cut_off_is_found() {
    let (lines, chain) = log(40);
    for at in 0..lines.len() {
        let seq = at as u64 + 1;
        let mut changed = lines.clone();
        changed[at] = changed[at].replace("memory", "terminal").replace("\"signature\":\"", "\"signature\":\"0");
        if changed[at] != lines[at] {
            let found = verdict(&changed, chain.head());
            assert!(matches!(found, Verdict::Broken { seq: found, .. } if found == seq || found == seq + 1), "{found}");
        }
        let mut removed = lines.clone();
        removed.remove(at);
        let found = verdict(&removed, chain.head());
        match at == lines.len() - 1 {
            true => assert_eq!(found, Verdict::Truncated { after: seq - 1, written: seq }),
            false => assert!(matches!(found, Verdict::Broken { seq: found, .. } if found == seq), "{found}"),
        }
        if at + 1 < lines.len() {
            let mut moved = lines.clone();
            moved.swap(at, at + 1);
            let found = verdict(&moved, chain.head());
            assert!(matches!(found, Verdict::Broken { seq: found, .. } if found == seq), "{found}");
        }
        let cut = verdict(&lines[..at], chain.head());
        assert_eq!(cut, Verdict::Truncated { after: at as u64, written: 40 });
    }
}

#[test]
fn a_chain_that_was_made_anew_without_the_key_is_found() {
    // The forger has the lines and the head, and can compute every hash; it has not the key.
    let (forger, mut chain) = (key(2), Chain::default());
    let mut lines = vec![chain.append(&Record::new(0, "key").with("public", key(1).public()))];
    lines.extend((1..9).map(|n| chain.append(&Record::new(n, "call").with("operation", "innocent"))));
    lines.push(chain.seal(&forger, 9));
    assert!(matches!(verdict(&lines, chain.head()), Verdict::Broken { seq: 10, .. }));
    // Without a checkpoint, the head that was kept apart tells.
    let head = chain.head();
    let mut verification = Verification::new(None, None, Vec::new());
    lines[..9].iter().for_each(|line| verification.take(line));
    let found = verification.end(Some((head, &forger.authenticate(&head))), Some(&key(1)));
    assert_eq!(found, Verdict::Broken { seq: 10, why: "the head of the log was forged".to_owned() });
    // A head that is older than the log.
    let (lines, _) = log(20);
    let (_, older) = log(10);
    assert!(matches!(verdict(&lines, older.head()), Verdict::Broken { seq: 20, .. }));
}

#[test]
fn an_anchor_elsewhere_tells_what_the_log_itself_cannot() {
    let (lines, chain) = log(30);
    let anchors = vec![chain.head()];
    // The log and its head were both taken back to an earlier time.
    let (earlier, before) = log(12);
    let mut verification = Verification::new(None, None, anchors.clone());
    earlier.iter().for_each(|line| verification.take(line));
    let head = before.head();
    let found = verification.end(Some((head, &key(1).authenticate(&head))), Some(&key(1)));
    assert_eq!(found, Verdict::Truncated { after: 12, written: 30 });
    let mut verification = Verification::new(None, None, vec![Head { seq: 5, hash: Hash::of(b"another") }]);
    lines.iter().for_each(|line| verification.take(line));
    assert!(matches!(verification.end(None, None), Verdict::Broken { seq: 5, .. }));
}

#[test]
fn a_log_that_the_retention_has_cut_is_intact_and_says_so() {
    let (lines, chain) = log(40);
    let key = key(1);
    let cut = Head { seq: 20, hash: Hash::of(lines[19].as_bytes()) };
    let seam = key.seam(cut, 77);
    let verify = |seam: Seam, lines: &[String]| {
        let mut verification = Verification::new(Some(seam), Some(key.public()), Vec::new());
        lines.iter().for_each(|line| verification.take(line));
        verification.end(Some((chain.head(), &key.authenticate(&chain.head()))), Some(&key))
    };
    let found = verify(seam.clone(), &lines[20..]);
    assert_eq!(found, Verdict::Intact { lines: 20, head: chain.head(), cut: Some(seam.clone()) });
    assert!(found.to_string().contains("cut by retention after 20 at 77"));
    assert!(matches!(verify(seam.clone(), &lines[21..]), Verdict::Broken { seq: 21, .. }));
    let forged = Seam { cut: Head { seq: 25, hash: Hash::of(lines[24].as_bytes()) }, ..seam };
    assert!(matches!(verify(forged, &lines[25..]), Verdict::Broken { seq: 25, .. }));
}

proptest! {
    #[test]
    fn any_bytes_are_no_log_and_nothing_panics(lines: Vec<String>, flip in 0_usize..4000) {
        let mut verification = Verification::new(None, None, Vec::new());
        lines.iter().for_each(|line| verification.take(line));
        _ = verification.end(None, None).to_string();
        // One bit of a whole log.
        let (mut lines, chain) = log(12);
        let at = flip % lines.len();
        let mut bytes = lines[at].clone().into_bytes();
        let byte = flip % bytes.len();
        bytes[byte] ^= 1;
        if let Ok(changed) = String::from_utf8(bytes) {
            lines[at] = changed;
            let intact = matches!(verdict(&lines, chain.head()), Verdict::Intact { .. });
            prop_assert!(!intact, "{}", lines[at]);
        }
    }
}
