//! Finds the known name that is nearest to a misspelt one. Every module may use it; it uses nothing.

/// The most likely intended name: letters missing, added, wrong or swapped, another case, `-` for `_`.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if word.len() > 64 {
        return None; // no name here is that long, and the comparison is quadratic
    }
    let plain = |word: &str| word.to_lowercase().replace(['-', ' '], "_");
    let wanted = plain(word);
    known
        .into_iter()
        .map(|name| (strsim::damerau_levenshtein(&wanted, &plain(name)), name))
        .filter(|(distance, name)| *distance <= (name.chars().count() / 3).max(1))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// The suffix of an error about an unknown `word`: `; did you mean x?`, or a list of the known names.
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
    fn a_slip_of_the_finger_is_understood_and_another_word_is_not() {
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
    fn an_endless_word_costs_nothing() {
        let word = "x".repeat(1_000_000);
        assert_eq!(nearest(&word, ["query"]), None);
    }
}
