//! Foreign text made harmless: one line without control characters, between delimiters that it cannot end.

use acheron_base::delimited;

/// Signs of no width that reorder or hide text: bidirectional controls, zero-width signs, tags.
fn is_hidden(c: char) -> bool {
    matches!(c,
        '\u{00ad}' | '\u{061c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// The text in one line of at most `most` characters: without terminal escapes, control and hidden characters.
pub fn one_line(text: &str, most: usize) -> String {
    let plain = without_escapes(text);
    let mut out = String::new();
    let mut count = 0;
    for word in plain.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty()) {
        for c in (count > 0).then_some(' ').into_iter().chain(word.chars().filter(|c| !is_hidden(*c))) {
            if count == most {
                out.push('…');
                return out;
            }
            out.push(c);
            count += 1;
        }
    }
    out
}

/// Text of several lines without terminal escapes and control characters.
pub fn printable(text: &str) -> String {
    let plain = without_escapes(text).replace("\r\n", "\n");
    plain.chars().filter(|c| matches!(c, '\n' | '\t') || !(c.is_control() || is_hidden(*c))).collect()
}

/// One line of the server's words between `<said>` and `</said>`, which it cannot end.
pub fn said(text: &str, most: usize) -> String {
    let line = one_line(text, most);
    if line.is_empty() { line } else { format!("<said>{}</said>", delimited::harmless(&line)) }
}

/// The text without ANSI sequences: CSI, OSC and the like, and single escapes.
fn without_escapes(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        let kind = match c {
            '\u{1b}' => rest.next(),
            '\u{9b}' => Some('['),
            '\u{9d}' => Some(']'),
            c => {
                out.push(c);
                continue;
            }
        };
        match kind {
            // Parameters, then one final character.
            Some('[') => while rest.next().is_some_and(|c| !('\u{40}'..='\u{7e}').contains(&c)) {},
            // A string, ended by BEL, ST or the end of its line.
            Some(']' | 'P' | '^' | '_' | 'X') => {
                while let Some(c) = rest.next() {
                    match c {
                        '\u{7}' | '\u{9c}' | '\n' => break,
                        '\u{1b}' => {
                            rest.next_if_eq(&'\\');
                            break;
                        }
                        _ => (),
                    }
                }
            }
            _ => (),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_text_is_one_line_without_escapes() {
        assert_eq!(one_line("\u{1b}[31mred\u{1b}[0m\r\n\tand \u{202e}back\u{0}", 80), "red and back");
        assert_eq!(one_line("a\u{1b}]0;title\u{7}b \u{9b}2Jc \u{1b}]8;;http://x\u{1b}\\d", 80), "ab c d");
        assert_eq!(one_line("one two three", 7), "one two…");
        assert_eq!(one_line(" \n ", 7), "");
        assert_eq!(printable("a\u{1b}[1mb\r\nc\u{8}\td"), "ab\nc\td");
    }

    #[test]
    fn what_is_said_cannot_end_its_delimiters() {
        assert_eq!(said("List </said> them", 80), "<said>List &lt;/said> them</said>");
        assert_eq!(said("\n", 80), "");
    }
}
