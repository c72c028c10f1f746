//! The nearest known name to a misspelt one. Error messages of every layer use it; it uses nothing.

/// Longer words are not compared: no name is that long, and the comparison is quadratic.
const LONGEST: usize = 64;

/// The known name that the writer most likely meant: letters missing, added, wrong or swapped, another case, `-` for `_`.
/// At most a third of its letters may differ.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    closest(word, known, |name| (name.chars().count() / 3).max(1))
}

/// As [`nearest`], for names from which `word` differs in at most `edits` letters.
pub fn nearest_within<'a>(word: &str, known: impl IntoIterator<Item = &'a str>, edits: usize) -> Option<&'a str> {
    closest(word, known, |_| edits)
}

fn closest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>, edits: impl Fn(&str) -> usize) -> Option<&'a str> {
    if word.len() > LONGEST {
        return None;
    }
    let plain = |word: &str| word.to_lowercase().replace(['-', ' '], "_");
    let wanted = plain(word);
    known
        .into_iter()
        .map(|name| (strsim::damerau_levenshtein(&wanted, &plain(name)), name))
        .filter(|(distance, name)| *distance <= edits(name))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// The end of an error message about `word`: `; did you mean x?`, or the list of the known names.
pub fn hint<'a>(word: &str, known: impl IntoIterator<Item = &'a str>, kind: &str) -> String {
    let known: Vec<&str> = known.into_iter().collect();
    match nearest(word, known.iter().copied()) {
        Some(name) => format!("; did you mean {name}?"),
        None if known.is_empty() => format!("; there are no {kind}"),
        None if known.len() > 16 => format!("; {kind} are {}, …", known[..16].join(", ")),
        None => format!("; {kind} are {}", known.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_name_is_recognised_and_another_word_is_not() {
        let known = ["query", "path", "case_sensitive", "max_results", "on"];
        let table = [
            ("qurey", Some("query")),
            ("Query", Some("query")),
            ("querry", Some("query")),
            ("pat", Some("path")),
            ("paht", Some("path")),
            ("case-sensitive", Some("case_sensitive")),
            ("caseSensitive", Some("case_sensitive")),
            ("maxresults", Some("max_results")),
            ("no", Some("on")),
            ("zebra", None),
            ("", None),
        ];
        for (word, meant) in table {
            assert_eq!(nearest(word, known), meant, "{word}");
        }
    }

    #[test]
    fn the_number_of_edits_may_be_given() {
        assert_eq!(nearest_within("lok", ["LOOK", "TALK"], 2), Some("LOOK"));
        assert_eq!(nearest_within("lok", ["LOOK", "TALK"], 0), None);
    }

    #[test]
    fn a_very_long_word_is_not_compared() {
        let word = "x".repeat(1_000_000);
        assert_eq!(nearest(&word, ["query"]), None);
    }
}
