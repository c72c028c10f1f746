//! Articles, capitals and lists in the kernel's own sentences.

/// The name with its article: a proper name and one that brings its own article stay, any other gets `the`.
pub fn the(name: &str) -> String {
    let brings_one = ["the ", "a ", "an "].iter().any(|article| name.to_lowercase().starts_with(article));
    let proper = name.chars().next().is_some_and(|first| first.is_uppercase() || !first.is_ascii_alphabetic());
    if brings_one || proper { name.to_owned() } else { format!("the {name}") }
}

/// The text with a capital at its beginning.
pub fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}

/// The name at the beginning of a sentence.
pub fn the_first(name: &str) -> String {
    capital(&the(name))
}

/// The text as a sentence: a capital at its beginning, an end at its end.
pub fn sentence(text: &str) -> String {
    let text = capital(text.trim());
    if text.is_empty() || text.ends_with(['.', '!', '?', '…', '。', '"', '”']) { text } else { format!("{text}.") }
}

/// `a, b and c`.
pub fn joined(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// `1 place`, `2 places`.
pub fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_stands_in_a_sentence_as_people_write_it() {
        let names = ["tide notice", "the Salt Market", "Lantern Quay", "a key", "keeper's key", "灯"];
        assert_eq!(
            names.map(the),
            ["the tide notice", "the Salt Market", "Lantern Quay", "a key", "the keeper's key", "灯"]
        );
        assert_eq!(the_first("tide notice"), "The tide notice");
        assert_eq!(sentence("nine boats, nine dates"), "Nine boats, nine dates.");
        assert_eq!(
            (counted(1, "place", "places"), counted(0, "place", "places")),
            ("1 place".into(), "0 places".into())
        );
        assert_eq!(joined(&["a".into(), "b".into(), "c".into()]), "a, b and c");
    }
}
