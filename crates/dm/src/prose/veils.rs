//! What the players want kept out of the story (`LINES_VEILS`), as words that no sentence of a narrator may have. Only `prose`
//! uses it.

use crate::refs::normal;
use crate::verbs::alike;

/// Words that begin a limit, or stand around it, and name nothing.
const AROUND: &[&str] = &[
    "no",
    "not",
    "none",
    "never",
    "without",
    "avoid",
    "avoids",
    "any",
    "veil",
    "veils",
    "veiled",
    "line",
    "lines",
    "hard",
    "soft",
    "off",
    "stage",
    "offstage",
    "screen",
    "fade",
    "black",
    "out",
    "keep",
    "kept",
    "of",
    "the",
    "a",
    "an",
    "to",
    "and",
    "or",
    "with",
    "in",
    "on",
    "for",
    "about",
    "please",
    "graphic",
    "explicit",
    "detailed",
    "scenes",
    "scene",
    "content",
    "descriptions",
];

/// A wish that is no limit: what players want, and not what they want kept out.
const WISHES: [&str; 6] = ["keep it", "make it", "more", "we want", "we like", "lots of"];

/// The words that are kept out.
pub fn kept_out(lines_veils: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for phrase in lines_veils.split([',', ';', '.', '/', '|', '\n']) {
        let phrase = normal(phrase);
        if WISHES.iter().any(|wish| phrase == *wish || phrase.starts_with(&format!("{wish} "))) {
            continue;
        }
        let own = phrase.split(' ').filter(|word| word.chars().count() > 2 && !AROUND.contains(word));
        words.extend(own.map(str::to_owned));
    }
    words.sort();
    words.dedup();
    words
}

/// Whether a sentence tells of what is kept out.
pub fn tells(sentence: &str, kept_out: &[String]) -> bool {
    let said = normal(sentence);
    said.split(' ').any(|word| kept_out.iter().any(|own| alike(word, own)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_the_words_that_it_names() {
        for (text, words) in [
            ("no spiders", "spiders"),
            ("Lines: torture; veils: graphic violence", "torture violence"),
            ("keep it light, no harm to children", "children harm"),
            ("-", ""),
            ("none", ""),
        ] {
            assert_eq!(kept_out(text).join(" "), words, "{text}");
        }
    }

    #[test]
    fn a_sentence_is_met_in_any_form_of_the_word() {
        let kept = kept_out("no spiders");
        assert!(tells("A Spider crawls.", &kept) && tells("Spiders!", &kept) && !tells("A spine of rock.", &kept));
        assert!(!tells("Anything.", &[]));
    }
}
