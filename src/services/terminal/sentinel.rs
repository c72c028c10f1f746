//! Running one command in a shell that is already there, and knowing when it ended.
//!
//! The shell is told to print a mark, run the command, and print another mark with the exit code. A mark contains a control
//! character that is written as an escape in what we type, so that the terminal's echo of it is no mark. Any shell that
//! knows `printf`, `eval` and `$?` will do.

/// No shell and no sane program prints this by itself.
pub const MARK: u8 = 0x1E;

/// Terminals take lines of at most 4096 bytes unless the shell reads them raw.
const LINE: usize = 1000;

/// More than any exit code has digits, and the mark after it.
const CODE: usize = 8;

/// What to type into the shell. `token` must be new each time and made of letters and digits.
pub fn script(token: &str, command: &str) -> String {
    let mut typed = String::from(" __acheron=''\n");
    let encoded = encoded(command);
    let mut rest = encoded.as_str();
    while !rest.is_empty() {
        // Everything is ASCII, and an escape is five characters long.
        let mut cut = rest.len().min(LINE);
        if cut < rest.len() {
            cut = rest[..cut].rfind('\\').filter(|at| *at + 5 > cut).unwrap_or(cut);
        }
        typed += &format!(" __acheron=$__acheron'{}'\n", &rest[..cut]);
        rest = &rest[cut..];
    }
    typed += &format!(
        " printf '\\036%s<\\036' {token}; eval \"$(printf %b \"$__acheron\")\" </dev/null; printf '\\036%s>%d\\036' {token} \"$?\"\n"
    );
    // A shell that cannot parse the command may give up the whole line above.
    typed += &format!(" printf '\\036%s>%d\\036' {token} \"$?\"\n");
    typed
}

/// Letters and digits as they are, every other byte as `\0ooo`: no shell expands it, no line editor acts on it.
fn encoded(command: &str) -> String {
    let mut text = String::new();
    for byte in command.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => text.push(char::from(byte)),
            _ => text += &format!("\\0{byte:03o}"),
        }
    }
    text
}

/// Reads what the shell prints, and finds the command's own output in it.
#[derive(Debug)]
pub struct Listener {
    begin: Vec<u8>,
    end: Vec<u8>,
    heard: Vec<u8>,
    begun: bool,
}

/// What a [`Listener`] makes of the next bytes.
#[derive(Debug, PartialEq, Eq)]
pub struct Heard {
    /// Output of the command.
    pub output: Vec<u8>,
    /// The exit code, once it ended.
    pub ended: Option<i32>,
}

impl Listener {
    pub fn new(token: &str) -> Self {
        let mark = |sign: &str| [&[MARK], token.as_bytes(), sign.as_bytes()].concat();
        let mut begin = mark("<");
        begin.push(MARK);
        Listener { begin, end: mark(">"), heard: Vec::new(), begun: false }
    }

    /// Takes more of what the terminal said. Keeps no more than could be the beginning of a mark.
    pub fn hear(&mut self, bytes: &[u8]) -> Heard {
        self.heard.extend_from_slice(bytes);
        if !self.begun {
            match find(&self.heard, &self.begin) {
                Some(at) => {
                    self.heard.drain(..at + self.begin.len());
                    self.begun = true;
                }
                None => {
                    // The command's end without its beginning: the shell could not even read it.
                    if let Some((_, code)) = self.closing() {
                        return Heard { output: Vec::new(), ended: Some(code) };
                    }
                    let keep = self.begin.len() + 16;
                    self.heard.drain(..self.heard.len().saturating_sub(keep));
                    return Heard { output: Vec::new(), ended: None };
                }
            }
        }
        if let Some((at, code)) = self.closing() {
            let output = self.heard.drain(..at).collect();
            return Heard { output, ended: Some(code) };
        }
        // A mark may have begun: whatever follows the last control character that could be one waits.
        let held = self.heard.iter().rposition(|byte| *byte == MARK).filter(|at| {
            let tail = &self.heard[*at..];
            let length = tail.len().min(self.end.len());
            tail[..length] == self.end[..length] && tail.len() < self.end.len() + CODE
        });
        let output = self.heard.drain(..held.unwrap_or(self.heard.len())).collect();
        Heard { output, ended: None }
    }

    /// Where the end mark stands, and the code in it.
    fn closing(&self) -> Option<(usize, i32)> {
        let mut from = 0;
        while let Some(at) = find(&self.heard[from..], &self.end).map(|at| from + at) {
            let digits = &self.heard[at + self.end.len()..];
            let stop = digits.iter().take(CODE).position(|byte| *byte == MARK);
            if let Some(code) = stop.and_then(|stop| std::str::from_utf8(&digits[..stop]).ok()?.parse().ok()) {
                return Some((at, code));
            }
            // Somebody printed half a mark: the real one may follow.
            from = at + 1;
        }
        None
    }
}

fn find(heap: &[u8], needle: &[u8]) -> Option<usize> {
    heap.windows(needle.len()).position(|window| window == needle)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn heard(token: &str, pieces: &[&[u8]]) -> (String, Option<i32>) {
        let mut listener = Listener::new(token);
        let (mut all, mut ended) = (Vec::new(), None);
        for piece in pieces {
            let heard = listener.hear(piece);
            all.extend(heard.output);
            ended = ended.or(heard.ended);
        }
        (String::from_utf8_lossy(&all).into_owned(), ended)
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
        let said = b"\x1et1<\x1eout\x1et1>x\x1e\x1et1>99999999999\x1e\x1et1>1\x1e";
        let output = "out\u{1e}t1>x\u{1e}\u{1e}t1>99999999999\u{1e}";
        assert_eq!(heard("t1", &[said]), (output.into(), Some(1)));
    }

    #[test]
    fn what_is_typed_holds_no_mark_and_no_long_line() {
        let typed = script("t1", &"echo '\t!$x \u{1e}t1>0\u{1e}'\n".repeat(100));
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
            ] {
                let run = std::process::Command::new(shell).arg("-c").arg(script("t1", command)).output().unwrap();
                let (said, ended) = heard("t1", &[&run.stdout]);
                if command != "if then" {
                    assert_eq!((said.as_str(), ended), (output, Some(code)), "{shell}: {command}");
                } else {
                    // A shell that is not interactive may give up here.
                    assert!(ended.is_none_or(|code| code != 0), "{shell}: {command}");
                }
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
            let mut listener = Listener::new("t1");
            let (mut all, mut ended) = (Vec::new(), None);
            for piece in said.chunks(size) {
                let heard = listener.hear(piece);
                all.extend(heard.output);
                ended = ended.or(heard.ended);
            }
            prop_assert_eq!(ended, Some(7));
            prop_assert_eq!(all, output);
        }
    }
}
