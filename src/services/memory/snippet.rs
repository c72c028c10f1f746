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
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shown(text: &str, words: &[&str]) -> String {
        snippet(text, &words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn a_short_text_is_shown_whole_on_one_line() {
        assert_eq!(shown("one\n  two\tthree\n", &["two"]), "one two three");
        assert_eq!(shown("", &["two"]), "");
    }

    #[test]
    fn the_window_is_where_the_words_are() {
        let text = format!("{} El Niño came back {}", "before ".repeat(50), "after ".repeat(50));
        let seen = shown(&text, &["nino"]);
        assert!(seen.starts_with('…') && seen.ends_with('…') && seen.contains("El Niño came back"), "{seen}");
        assert!(seen.chars().count() <= WIDTH + 2);
    }

    #[test]
    fn the_place_with_most_words_wins() {
        let text = format!("alpha {} alpha beta {}", "x ".repeat(200), "y ".repeat(200));
        assert!(shown(&text, &["alpha", "beta"]).contains("alpha beta"));
    }

    #[test]
    fn words_without_spaces_are_seen() {
        let text = format!("{}東京都に住む{}", "あ".repeat(300), "い".repeat(300));
        assert!(shown(&text, &["東京"]).contains("東京都に住む"));
    }

    #[test]
    fn a_headline_is_the_first_line_with_words() {
        assert_eq!(headline("\n\n  Title \nmore"), "Title");
        assert_eq!(headline(""), "");
        assert_eq!(headline(&"é".repeat(200)).chars().count(), WIDTH + 1);
    }

    proptest! {
        #[test]
        fn nothing_panics_and_it_stays_short(text in "(?s).{0,400}", words in proptest::collection::vec(".{0,5}", 0..20)) {
            prop_assert!(snippet(&text, &words).chars().count() <= WIDTH + 2);
            prop_assert!(!headline(&text).contains('\n'));
        }
    }
}
