//! The part of a text that shows why it was found.

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

/// How many characters are shown.
const WIDTH: usize = 160;
/// How much of a long text is searched.
const REACH: usize = 64 * 1024;

/// One line: about [`WIDTH`] characters around the place that has the most of the words, or the beginning.
pub fn snippet(text: &str, needles: &[String]) -> String {
    let chars: Vec<char> = text.chars().take(REACH).collect();
    let folded: Vec<char> = chars.iter().map(|c| fold(*c)).collect();
    let start = best(&folded, needles).map_or(0, |at| begin(&chars, at));
    let end = (start + WIDTH).min(chars.len());
    let shown: String = chars[start..end].iter().collect();
    let shown = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    let more = end < chars.len() || text.chars().nth(chars.len()).is_some();
    format!("{}{shown}{}", if start > 0 { "…" } else { "" }, if more { "…" } else { "" })
}

/// The first line that says something, cut to fit into one.
pub fn headline(text: &str) -> String {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("");
    match line.char_indices().nth(WIDTH) {
        Some((at, _)) => format!("{}…", line[..at].trim_end()),
        None => line.to_owned(),
    }
}

/// Where a window begins that has the most different words, the earliest of those.
fn best(text: &[char], needles: &[String]) -> Option<usize> {
    let needles: Vec<Vec<char>> = needles.iter().take(16).map(|word| word.chars().map(fold).collect()).collect();
    let mut hits: Vec<(usize, usize)> = Vec::new();
    for (which, needle) in needles.iter().enumerate().filter(|(_, needle)| !needle.is_empty()) {
        let starts = text.windows(needle.len()).enumerate().filter(|(_, window)| window == needle);
        hits.extend(starts.map(|(at, _)| (at, which)).take(64));
    }
    hits.sort_unstable();
    let worth = |first: usize| {
        let mut seen = [false; 16];
        let within = hits.iter().filter(|(at, _)| (first..first + WIDTH * 3 / 4).contains(at));
        within.for_each(|(_, which)| seen[*which] = true);
        seen.into_iter().filter(|seen| *seen).count()
    };
    hits.iter().map(|(at, _)| *at).max_by_key(|at| (worth(*at), std::cmp::Reverse(*at)))
}

/// A little before the place, at the beginning of a word.
fn begin(chars: &[char], at: usize) -> usize {
    let early = at.saturating_sub(WIDTH / 4);
    if early == 0 {
        return 0;
    }
    let space = chars[early..at].iter().position(|c| c.is_whitespace());
    space.map_or(early, |space| early + space + 1)
}

/// Case and accents do not matter, as they do not to the index.
fn fold(c: char) -> char {
    if c.is_ascii() {
        return c.to_ascii_lowercase();
    }
    let bare = [c].into_iter().nfkd().find(|c| !is_combining_mark(*c)).unwrap_or(c);
    bare.to_lowercase().next().unwrap_or(bare)
}

#[cfg(test)]
mod tests;
