//! Names of tools and resources as names of files: normalised, and unique among each other.

use std::collections::BTreeSet;

/// The longest name of an operation.
const LONGEST: usize = 64;
/// The longest name of a resource's file.
const LONGEST_FILE: usize = 120;

/// Gives out names, each only once.
#[derive(Debug, Default)]
pub struct UniqueNames(BTreeSet<String>);

impl UniqueNames {
    /// Names that are not given out.
    pub fn without(names: &[&str]) -> Self {
        UniqueNames(names.iter().map(|name| (*name).to_owned()).collect())
    }

    /// The name of an operation for a tool: `get-tiny.Image` is `get-tiny_image`; the second of that name ends in `-2`.
    pub fn operation(&mut self, tool: &str) -> String {
        self.unique(operation(tool), LONGEST, "")
    }

    /// The name of a file: with its extension, without anything that a shell or a terminal would mind.
    pub fn file(&mut self, name: &str) -> String {
        let name = file(name);
        match name.rfind('.').filter(|at| *at > 0 && name.len() - at <= 12) {
            Some(at) => self.unique(name[..at].to_owned(), LONGEST_FILE, &name[at..]),
            None => self.unique(name, LONGEST_FILE, ""),
        }
    }

    fn unique(&mut self, base: String, longest: usize, end: &str) -> String {
        let mut number = 1;
        loop {
            let more = if number == 1 { String::new() } else { format!("-{number}") };
            let keep = longest - more.len() - end.len();
            let name = format!("{}{more}{end}", &base[..base.len().min(keep)]);
            if self.0.insert(name.clone()) {
                return name;
            }
            number += 1;
        }
    }
}

fn operation(tool: &str) -> String {
    let mut name = String::new();
    let mut before = ' ';
    for c in tool.chars().take(200) {
        // `getImage` is two words.
        if c.is_ascii_uppercase() && before.is_ascii_lowercase() {
            name.push('_');
        }
        name.push(match c.to_ascii_lowercase() {
            c if c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' => c,
            _ => '_',
        });
        before = c;
    }
    let plain = name.trim_matches(['_', '-']);
    match plain.chars().next() {
        None => "tool".to_owned(),
        Some(first) if first.is_ascii_lowercase() => plain.to_owned(),
        Some(_) => format!("tool_{plain}"),
    }
}

fn file(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-') { c } else { '_' };
    let name: String = name.chars().take(200).map(plain).collect();
    match name.trim_matches(['.', '_', '-']) {
        "" => "resource".to_owned(),
        name => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_normalised_and_unique() {
        let mut names = UniqueNames::without(&["invoke"]);
        let given =
            ["git_log", "get-tiny-image", "getTinyImage", "Git.Log", "git_log", "2fa", "invoke", "é/ü", "", "../x"];
        let got: Vec<String> = given.iter().map(|name| names.operation(name)).collect();
        assert_eq!(
            got,
            [
                "git_log",
                "get-tiny-image",
                "get_tiny_image",
                "git_log-2",
                "git_log-3",
                "tool_2fa",
                "invoke-2",
                "tool",
                "tool-2",
                "x"
            ]
        );
        let long = names.operation(&"a".repeat(300));
        assert_eq!((long.len(), names.operation(&"a".repeat(300)).len()), (64, 64));
    }

    #[test]
    fn files_keep_their_extension() {
        let mut names = UniqueNames::default();
        let given = ["notes.md", "notes.md", "../../etc/passwd", ".hidden", "a b\u{1b}[2J.txt", ".."];
        let got: Vec<String> = given.iter().map(|name| names.file(name)).collect();
        assert_eq!(got, ["notes.md", "notes-2.md", "etc_passwd", "hidden", "a_b__2J.txt", "resource"]);
    }
}
