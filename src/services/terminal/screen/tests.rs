use super::*;

/// What is shown when the bytes come in pieces of every size.
fn check(prepare: impl Fn(&mut Screen), said: &[u8], expected: &[u8]) {
    for size in 1..=said.len() {
        let mut screen = Screen::default();
        prepare(&mut screen);
        let shown: Vec<u8> = said.chunks(size).flat_map(|piece| screen.show(piece)).collect();
        assert_eq!(String::from_utf8_lossy(&shown), String::from_utf8_lossy(expected), "pieces of {size}");
    }
}

/// As when the fallback line was typed once the command had begun.
fn second(screen: &mut Screen) {
    screen.typed("t1", "wait");
    screen.fallback_typed("t1");
}

const ECHO: &[u8] = b" printf '\\036%s=%d\\036' t1 \"$?\"\r\n";

#[test]
fn a_command_is_shown_as_if_it_had_been_typed() {
    let said = b" __acheron='x'\r\n$ printf\r\n\x1et1<\x1e/tmp\r\n\xff\x1et1>0\x1e$ ls\r\n";
    check(|screen| screen.typed("t1", "pwd\nx"), said, b"pwd\r\nx\r\n/tmp\r\n\xff$ ls\r\n");
}

#[test]
fn the_fallback_line_is_not_shown() {
    // The kernel echoes it at once, and a line editor once more.
    let said = [b"typed\x1et1<\x1eone ", ECHO, b"two\r\n\x1et1>0\x1e$ ", ECHO, b"\x1et1=0\x1e$ "].concat();
    check(second, &said, b"wait\r\none two\r\n$ ");
    let said = [b"typed\x1et1<\x1e\x1et1>0\x1e$ ", ECHO, b"\x1et1=0\x1e$  printf"].concat();
    check(second, &said, b"wait\r\n$  printf");
}

#[test]
fn a_shell_that_gives_up_a_command_shows_one_prompt() {
    for (first, again, shown) in [
        (&b"$ "[..], &b"$ "[..], &b"wait\r\n\r\n$ ls"[..]),
        (b"\x1b[?2004h1$ ", b"\x1b[?2004h2$ ", b"wait\r\n\r\n\x1b[?2004h1$ \x1b[?2004h2$ ls"),
        (b"", b"$ ", b"wait\r\n\r\n$ ls"),
    ] {
        let said = [b"typed\x1et1<\x1e\r\n", first, ECHO, b"\x1et1=130\x1e", again, b"ls"].concat();
        check(second, &said, shown);
    }
    // The same with a caller that has gone.
    let said = [b"^C\r\n$ ", ECHO, b"\x1b[?2004l\r\x1et1=130\x1e$ "].concat();
    let gone = |screen: &mut Screen| {
        second(screen);
        screen.open();
    };
    check(gone, &said, b"^C\r\n$ ");
}

#[test]
fn what_is_held_back_is_shown_when_the_terminal_closes() {
    let mut screen = Screen::default();
    second(&mut screen);
    let shown = screen.show(b"typed\x1et1<\x1ea\x1et1 printf");
    assert_eq!([shown, screen.finish()].concat(), b"wait\r\na\x1et1 printf");
    let shown = screen.show(b"b\x1et1");
    assert_eq!([shown, screen.finish()].concat(), b"b\x1et1");
}

#[test]
fn the_fallback_line_of_an_earlier_command_is_no_matter() {
    let next = |screen: &mut Screen| {
        second(screen);
        screen.typed("t2", "ls");
    };
    let said = [b"$ ", ECHO, b"\x1et1=0\x1e$  x\r\n\x1et2<\x1ea \x1et2>0\x1e$ "].concat();
    check(next, &said, b"ls\r\na $ ");
    // It went elsewhere, and its mark never comes.
    check(next, b"$  x\r\n\x1et2<\x1ea \x1et2>0\x1e$ ", b"ls\r\na $ ");
}

#[test]
fn what_is_no_mark_of_ours_is_shown_as_it_is() {
    for said in [&b"a\x1eb"[..], b"\x1e\x1e\x1e", b"\x1erecord one\x1erecord two\x1e", b"\x1et9<x\x1e"] {
        let mut screen = Screen::default();
        let mut shown = screen.show(said);
        shown.extend(screen.show(b" end"));
        assert_eq!(shown, [said, b" end"].concat(), "{said:?}");
    }
    check(|_| (), b"one\x1et1>0\x1e two\x1et1=0\x1e", b"one two");
}

#[test]
fn a_command_that_cannot_be_read_ends_at_the_fallback_line() {
    check(second, b"echo\x1et1=2\x1e$ ls", b"$ ls");
}

#[test]
fn what_never_ends_is_not_hidden_for_ever() {
    let mut screen = Screen::default();
    second(&mut screen);
    screen.show(b"\x1et1<\x1e");
    screen.show(b"\x1et1>0\x1e");
    let shown: usize = (0..100).map(|_| screen.show(&[b'y'; 100]).len()).sum();
    assert!(shown > 5000, "{shown}");
    screen.typed("t2", "x");
    screen.open();
    assert_eq!(screen.show(b"by hand"), b"by hand");
}
