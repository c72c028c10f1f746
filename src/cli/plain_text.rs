//! Text of agents on the terminal of the operator: the one place that decides what of it is shown as it is. Every command
//! uses it for what it prints.

use std::io::IsTerminal;

/// Text for standard output; what is piped elsewhere is left as it is.
pub fn for_stdout(text: &str) -> String {
    on(std::io::stdout().is_terminal(), text)
}

/// Text for standard error.
pub fn for_stderr(text: &str) -> String {
    on(std::io::stderr().is_terminal(), text)
}

fn on(terminal: bool, text: &str) -> String {
    match terminal {
        true => plain(text),
        false => text.to_owned(),
    }
}

/// The text with all control characters escaped, apart from line ends and tabs, and those that change the direction of
/// writing: with them a text looks like another one. The latter are escaped as in JSON, which stays JSON by that.
pub fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for letter in text.chars() {
        if turns(letter) {
            plain.push_str(&format!("\\u{:04x}", u32::from(letter)));
        } else if letter.is_control() && !matches!(letter, '\n' | '\t') {
            plain.extend(letter.escape_default());
        } else {
            plain.push(letter);
        }
    }
    plain
}

/// Whether a character changes the direction of writing (Unicode, UAX 9), or begins a line of its own.
fn turns(letter: char) -> bool {
    matches!(letter, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_agent_says_gives_no_orders_to_a_terminal() {
        let said = plain("a\tb\n\u{1b}]52;c;eA==\u{7}\u{9b}2J\r\u{7f}é");
        assert_eq!(said, "a\tb\n\\u{1b}]52;c;eA==\\u{7}\\u{9b}2J\\r\\u{7f}é");
        assert_eq!(on(false, "\u{202e}"), "\u{202e}");
    }

    #[test]
    fn what_an_agent_says_does_not_turn_the_direction_of_writing() {
        let said = plain("{\"say\":\"\u{202e}cod.exe\u{2066}\u{200f}\u{61c}ש\"}");
        assert_eq!(said, "{\"say\":\"\\u202ecod.exe\\u2066\\u200f\\u061cש\"}");
        let value: serde_json::Value = serde_json::from_str(&said).unwrap();
        assert!(value["say"].as_str().unwrap().starts_with('\u{202e}'), "it is the same JSON");
    }
}
