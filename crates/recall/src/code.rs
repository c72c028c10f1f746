//! Where a Markdown text is code: fences, indented blocks and spans. What stands there is quoted, not meant.

use std::collections::HashMap;
use std::ops::Range;

/// The stretches of code, in order. Linear in the length of the text.
pub fn code(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut fence: Option<(usize, char, usize)> = None;
    let (mut at, mut paragraph) = (0, 0);
    // An indented line is code, unless it goes on with a paragraph or belongs to an item of a list.
    let (mut is_open, mut in_list) = (false, false);
    for line in text.split_inclusive('\n') {
        let (begin, end) = (at, at + line.len());
        at = end;
        let marks = fence_of(line);
        match (fence, marks) {
            (Some((from, mark, length)), Some((other, count, bare))) if other == mark && count >= length && bare => {
                found.push(from..end);
                (fence, paragraph) = (None, end);
            }
            (Some(_), _) => {}
            (None, Some((mark, count, bare))) if mark == '~' || bare || !line.trim_start()[count..].contains('`') => {
                spans(text, paragraph..begin, &mut found);
                fence = Some((begin, mark, count));
            }
            (None, _) if line.trim().is_empty() => {
                spans(text, paragraph..begin, &mut found);
                (paragraph, is_open) = (end, false);
            }
            (None, _) if is_indented(line) && !is_open && !in_list => {
                spans(text, paragraph..begin, &mut found);
                found.push(begin..end);
                paragraph = end;
            }
            (None, _) => {
                in_list = is_item(line) || in_list && (is_open || line.starts_with([' ', '\t']));
                is_open = !line.starts_with('#');
            }
        }
    }
    match fence {
        Some((from, ..)) => found.push(from..text.len()),
        None => spans(text, paragraph..text.len(), &mut found),
    }
    found
}

/// Whether a place is in one of the stretches.
pub fn within(stretches: &[Range<usize>], at: usize) -> bool {
    let before = stretches.partition_point(|stretch| stretch.end <= at);
    stretches.get(before).is_some_and(|stretch| stretch.start <= at)
}

fn is_indented(line: &str) -> bool {
    line.starts_with("    ") || line.trim_start_matches(' ').starts_with('\t')
}

/// Whether a line begins an item of a list.
fn is_item(line: &str) -> bool {
    let inner = line.trim_start();
    let rest = inner.trim_start_matches(|c: char| c.is_ascii_digit());
    let marked = match inner.len() == rest.len() {
        true => inner.strip_prefix(['-', '*', '+']),
        false => rest.strip_prefix(['.', ')']),
    };
    marked.is_some_and(|rest| rest.starts_with([' ', '\t', '\n']) || rest.is_empty())
}

/// The mark of a fence, how many there are, and whether nothing follows.
fn fence_of(line: &str) -> Option<(char, usize, bool)> {
    let inner = line.trim_start_matches(' ');
    let mark = inner.chars().next().filter(|mark| matches!(mark, '`' | '~'))?;
    let count = inner.chars().take_while(|c| *c == mark).count();
    (line.len() - inner.len() <= 3 && count >= 3).then(|| (mark, count, inner[count..].trim().is_empty()))
}

/// Spans within one paragraph: a run of backticks up to the next of the same length.
fn spans(text: &str, paragraph: Range<usize>, found: &mut Vec<Range<usize>>) {
    let bytes = text.as_bytes();
    let mut runs: Vec<Range<usize>> = Vec::new();
    for at in paragraph {
        match runs.last_mut() {
            _ if bytes[at] != b'`' => {}
            Some(run) if run.end == at => run.end += 1,
            _ => runs.push(at..at + 1),
        }
    }
    let mut next = vec![None; runs.len()];
    let mut later = HashMap::new();
    for (number, run) in runs.iter().enumerate().rev() {
        next[number] = later.insert(run.len(), number);
    }
    let mut number = 0;
    while number < runs.len() {
        if let Some(close) = next[number] {
            found.push(runs[number].start..runs[close].end);
            number = close;
        }
        number += 1;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn fences_and_spans_are_code() {
        for (text, wanted) in [
            ("no code", vec![]),
            ("a `b` c", vec!["`b`"]),
            ("a ``b ` c`` d", vec!["``b ` c``"]),
            ("an ` alone", vec![]),
            ("an ` alone\n\nanother ` alone", vec![]),
            ("x\n```rs\na\n```\ny `z`", vec!["```rs\na\n```\n", "`z`"]),
            ("~~~\n```\n~~~\n", vec!["~~~\n```\n~~~\n"]),
            ("```\nnever closed", vec!["```\nnever closed"]),
            ("```not a fence``` x", vec!["```not a fence```"]),
            ("a\n\n    b\n    c\n\nd", vec!["    b\n", "    c\n"]),
            ("    first\n", vec!["    first\n"]),
            ("# head\n\tcode\n", vec!["\tcode\n"]),
            ("a\n    not\n", vec![]),
            ("1. a\n\n    not\n\nb\n\n    code", vec!["    code"]),
        ] {
            let found: Vec<&str> = code(text).into_iter().map(|at| &text[at]).collect();
            assert_eq!(found, wanted, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn any_text_has_its_stretches_in_order(text in "[`~ab\\n ]{0,60}") {
            let found = code(&text);
            prop_assert!(found.windows(2).all(|two| two[0].end <= two[1].start));
            prop_assert!(found.iter().all(|at| text.get(at.clone()).is_some()));
        }
    }
}
