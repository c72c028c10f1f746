//! Text of agents on the terminal of the operator: the one place that decides what of it is shown as it is. Every command
//! uses it for what it prints, and the log for its lines.

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

/// One entry of the log, which may be read at a terminal later. Lines after the first are indented, so that none of them
/// looks like an entry. `coloured`: the logger's own colours are left; it has escaped those of others.
pub fn log_entry(entry: &str, coloured: bool) -> String {
    let (text, end) = entry.strip_suffix('\n').map_or((entry, ""), |text| (text, "\n"));
    let mut lines = text.split('\n').map(|line| match coloured {
        true => line.split('\u{1b}').map(plain).collect::<Vec<_>>().join("\u{1b}"),
        false => plain(line),
    });
    let first = lines.next().unwrap_or_default();
    lines.fold(first, |entry, line| entry + "\n    " + &line) + end
}

/// A text of others within one line of ours: line ends and tabs are escaped, too.
pub fn one_line(text: &str) -> String {
    let escaped = text.chars().flat_map(|letter| match letter {
        '\n' | '\t' | '\r' => letter.escape_default().collect::<Vec<_>>(),
        letter => vec![letter],
    });
    escaped.collect()
}

/// The text with all control characters escaped, apart from line ends and tabs, and those that change the direction of
/// writing or cannot be seen: with them a text looks like another one. The latter are escaped as in JSON, which stays JSON by
/// that.
pub fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for letter in text.chars() {
        if turns(letter) || is_unseen(letter) {
            let mut units = [0; 2];
            plain.extend(letter.encode_utf16(&mut units).iter().map(|unit| format!("\\u{unit:04x}")));
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

/// Whether a character is a format character that shows nothing. Those that join letters or keep them apart are left: some
/// scripts cannot be written without them.
fn is_unseen(letter: char) -> bool {
    matches!(
        letter,
        '\u{ad}' | '\u{180e}' | '\u{200b}' | '\u{2060}'..='\u{2065}' | '\u{206a}'..='\u{206f}' | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e007f}'
    )
}

#[cfg(test)]
mod tests;
