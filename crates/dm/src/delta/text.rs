//! The delta as text: `<!-- ARCHIVE_DELTA`, a list of files, `-->` alone on its line.
//!
//! The block ends at a line that is exactly `-->` at the opener's indent, so a comment inside a file's text does not end it.

use super::{Delta, DeltaItem, What};
use acheron_base::{Error, Result};

const MOST: usize = 64;

pub fn render(delta: &Delta) -> String {
    let mut out = String::from("<!-- ARCHIVE_DELTA\n");
    for flag in &delta.risk_flags {
        out.push_str(&format!("risk_flag: {flag}\n"));
    }
    out.push_str("files:\n");
    for item in &delta.items {
        out.push_str(&format!("  - path: {}\n", item.path));
        if let Some(base) = &item.base {
            out.push_str(&format!("    base: {base}\n"));
        }
        let (word, text) = match &item.what {
            What::Append(text) => ("append", text),
            What::Patch { text, create } => {
                if *create {
                    out.push_str("    create: true\n");
                }
                ("patch", text)
            }
        };
        out.push_str(&format!("    {word}: |\n"));
        for line in text.trim_end_matches('\n').split('\n') {
            out.push_str(if line.is_empty() { "" } else { "      " });
            out.push_str(line);
            out.push('\n');
        }
    }
    out.push_str("-->\n");
    out
}

/// The one delta block of a text.
pub fn parse(text: &str) -> Result<Delta> {
    let mut lines = text.lines().enumerate().map(|(at, line)| (at + 1, line)).peekable();
    let opener = lines.by_ref().find(|(_, line)| line.trim() == "<!-- ARCHIVE_DELTA");
    let Some((_, opener)) = opener else { return Err(Error::invalid("there is no <!-- ARCHIVE_DELTA block")) };
    let indent = &opener[..opener.len() - opener.trim_start().len()];
    let mut delta = Delta::default();
    let (mut listed, mut open): (bool, Option<Draft>) = (false, None);
    while let Some((at, raw)) = lines.next() {
        let wrong = |message: String| Error::invalid(format!("delta line {at}: {message}"));
        let line = raw.strip_prefix(indent).unwrap_or(raw);
        if line == "-->" {
            if !listed {
                return Err(wrong("there is no files: list".into()));
            }
            delta.items.extend(open.take().map(Draft::close).transpose()?);
            return Ok(delta);
        }
        if line.trim().is_empty() {
            continue;
        }
        if let Some(flag) = line.strip_prefix("risk_flag: ") {
            delta.risk_flags.push(flag.trim().to_owned());
            continue;
        }
        if line.trim_end() == "files:" {
            listed = true;
            continue;
        }
        if let Some(path) = line.strip_prefix("  - path:").filter(|_| listed) {
            delta.items.extend(open.take().map(Draft::close).transpose()?);
            if delta.items.len() >= MOST {
                return Err(wrong(format!("more than {MOST} files")));
            }
            open = Some(Draft { line: at, path: path.trim().to_owned(), ..Draft::default() });
            continue;
        }
        let Some((draft, (key, value))) =
            open.as_mut().zip(line.strip_prefix("    ").and_then(|rest| rest.split_once(':')))
        else {
            return Err(wrong(format!("`{}` is no part of a delta", crate::md::clip(line.trim(), 40))));
        };
        match (key, value.trim()) {
            ("append", "|") => draft.append = Some(block(&mut lines, indent)),
            ("patch", "|") => draft.patch = Some(block(&mut lines, indent)),
            ("append" | "patch", _) => {
                return Err(wrong(format!("{key}: must be followed by | and an indented block")));
            }
            ("create", value) => draft.create = value == "true",
            ("base", value) => draft.base = Some(value.to_owned()),
            (other, _) => return Err(wrong(format!("`{other}` is refused: only append and patch change a file"))),
        }
        if draft.append.is_some() && draft.patch.is_some() {
            return Err(wrong(format!("{} has both append and patch", draft.path)));
        }
    }
    Err(Error::invalid("the delta is not closed by a line that is -->"))
}

/// The lines that are indented deeper than the key; their indent is taken off.
fn block<'a>(lines: &mut std::iter::Peekable<impl Iterator<Item = (usize, &'a str)>>, indent: &str) -> String {
    let mut text = String::new();
    while let Some((_, raw)) = lines.peek() {
        let line = raw.strip_prefix(indent).unwrap_or(raw);
        let body = line.strip_prefix("      ");
        match body {
            Some(body) => text.push_str(body),
            None if line.trim().is_empty() => (),
            None => break,
        }
        text.push('\n');
        lines.next();
    }
    format!("{}\n", text.trim_end_matches('\n'))
}

#[derive(Default)]
struct Draft {
    line: usize,
    path: String,
    append: Option<String>,
    patch: Option<String>,
    create: bool,
    base: Option<String>,
}

impl Draft {
    fn close(self) -> Result<DeltaItem> {
        let Draft { line, path, append, patch, create, base } = self;
        let what = match (append, patch) {
            (Some(text), None) => What::Append(text),
            (None, Some(text)) => What::Patch { text, create },
            _ => return Err(Error::invalid(format!("delta line {line}: {path} has neither append nor patch"))),
        };
        Ok(DeltaItem { path, what, base })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_comment_inside_does_not_end_the_block() {
        let text = "<!-- CONTEXT_PACK_NEXT\nt=day 1\n-->\n\nend\n";
        let delta = Delta { items: vec![DeltaItem::append("a.md", text)], risk_flags: vec!["b.md".into()] };
        assert_eq!(parse(&render(&delta)).unwrap(), delta);
    }

    #[test]
    fn rows_89_and_90_the_grammar_is_strict() {
        let block = |body: &str| format!("<!-- ARCHIVE_DELTA\nfiles:\n  - path: a.md\n{body}-->\n");
        for (row, body, sentence) in [
            ("89", "    append: |\n      x\n    patch: |\n      y\n", "delta line 6: a.md has both append and patch"),
            (
                "90",
                "    replace: |\n      x\n",
                "delta line 4: `replace` is refused: only append and patch change a file",
            ),
            (
                "90a",
                "    rewrite: |\n      x\n",
                "delta line 4: `rewrite` is refused: only append and patch change a file",
            ),
            ("90b", "", "delta line 3: a.md has neither append nor patch"),
            ("90c", "    append: x\n", "delta line 4: append: must be followed by | and an indented block"),
        ] {
            assert_eq!(parse(&block(body)).unwrap_err().message, sentence, "row {row}");
        }
        assert!(parse("nothing").is_err());
        assert!(parse("<!-- ARCHIVE_DELTA\nfiles:\n").unwrap_err().message.contains("not closed"));
    }

    proptest! {
        #[test]
        fn any_text_can_be_carried(text in "\\PC{0,20}(\n[ -]{0,6}\\PC{0,20}){0,5}") {
            prop_assume!(!text.trim().is_empty() && !text.contains('\r'));
            let delta = Delta { items: vec![DeltaItem::append("a.md", format!("{}\n", text.trim_end_matches('\n')))], ..Delta::default() };
            let back = parse(&render(&delta)).unwrap();
            let plain = |delta: &Delta| match &delta.items[0].what { What::Append(text) | What::Patch { text, .. } => text.trim_end().to_owned() };
            prop_assert_eq!(plain(&back), text.trim_end());
        }

        #[test]
        fn no_block_breaks_the_parser(text in "(<!-- ARCHIVE_DELTA\n)?(files:\n)?([ a-z:|>-]{0,30}\n){0,8}") {
            let _ = parse(&text);
        }
    }
}
