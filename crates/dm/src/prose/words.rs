//! Words as they are compared when a text might tell what is not to be told: without their endings, and together with the words
//! that say the same. `prose` and `deeds` use it.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use crate::refs::normal;

/// Words that say the same, one group per line. A word may stand in several.
const ALIKE: &str = include_str!("words.txt");

/// The groups of each stem.
static GROUPS: LazyLock<HashMap<String, Vec<usize>>> = LazyLock::new(|| {
    let mut groups: HashMap<String, Vec<usize>> = HashMap::new();
    for (at, line) in ALIKE.lines().filter(|line| !line.starts_with('#')).enumerate() {
        for word in line.split_whitespace() {
            groups.entry(stem(word)).or_default().push(at);
        }
    }
    groups
});

/// Words that carry nothing of a sentence.
const STOP: &[&str] = &[
    "the", "a", "an", "and", "or", "but", "if", "of", "to", "in", "on", "at", "by", "for", "from", "with", "without",
    "under", "over", "into", "off", "up", "down", "as", "than", "then", "so", "not", "no", "that", "this", "these",
    "those", "what", "who", "whom", "which", "where", "when", "why", "how", "he", "she", "it", "they", "we", "you",
    "i", "him", "her", "his", "hers", "its", "their", "them", "my", "your", "our", "own", "is", "are", "was", "were",
    "be", "been", "being", "has", "have", "had", "do", "does", "did", "will", "would", "may", "might", "can", "could",
    "there", "here", "one", "all", "before", "after", "because", "whoever", "s", "else", "went", "go", "himself",
    "herself", "itself", "once", "still", "now", "too",
];

/// Words that nearly every sentence may have: on their own they give nothing away.
const WEAK: &[&str] = &[
    "name",
    "night",
    "room",
    "come",
    "see",
    "walk",
    "leave",
    "ask",
    "keep",
    "know",
    "people",
    "time",
    "place",
    "day",
    "thing",
    "say",
    "stand",
    "lie",
    "look",
    "way",
    "make",
    "give",
    "take",
    "hear",
    "old",
    "new",
    "man",
    "woman",
    "hold",
    "tell",
    "somebody",
    "nobody",
    "everybody",
    "long",
    "stop",
    "house",
    "saw",
    "seen",
    "came",
    "left",
    "kept",
    "knew",
    "known",
    "told",
    "said",
    "stood",
    "lay",
    "gave",
    "given",
    "took",
    "taken",
    "heard",
    "held",
];

static WEAK_STEMS: LazyLock<HashSet<String>> = LazyLock::new(|| WEAK.iter().map(|word| stem(word)).collect());

/// A word without its ending. Words of one root mostly meet in it; what does not, stands in a group.
pub(crate) fn stem(word: &str) -> String {
    let ends = ["ing", "ies", "es", "ed", "s", "y", "e"];
    let cut = ends.iter().find_map(|end| word.strip_suffix(end)).filter(|stem| stem.chars().count() >= 3);
    let mut stem = cut.unwrap_or(word).to_owned();
    let mut last = stem.chars().rev();
    if let (Some(one), Some(other)) = (last.next(), last.next())
        && one == other
        && stem.chars().count() > 3
    {
        stem.pop();
    }
    stem
}

/// A word that is compared often: its stem and its groups are looked up once.
#[derive(Clone, Debug)]
pub struct ComparedWord {
    stem: String,
    groups: &'static [usize],
}

impl ComparedWord {
    pub(crate) fn new(word: &str) -> ComparedWord {
        let stem = stem(word);
        let groups = GROUPS.get(&stem).map(Vec::as_slice).unwrap_or_default();
        ComparedWord { stem, groups }
    }

    /// Whether both are forms of one word.
    pub(crate) fn is(&self, other: &ComparedWord) -> bool {
        self.stem == other.stem
    }

    /// Whether both say the same.
    pub(crate) fn same(&self, other: &ComparedWord) -> bool {
        self.stem == other.stem || self.groups.iter().any(|own| other.groups.contains(own))
    }
}

/// Whether two words say the same.
pub(crate) fn same(one: &str, other: &str) -> bool {
    ComparedWord::new(one).same(&ComparedWord::new(other))
}

/// Whether a word is one that many sentences have.
pub(crate) fn weak(word: &str) -> bool {
    WEAK_STEMS.contains(&stem(word))
}

/// The words of a text that carry it, each once.
pub(crate) fn content(text: &str) -> Vec<String> {
    let text = normal(text);
    let mut words: Vec<String> = Vec::new();
    for word in text.split(' ').filter(|word| !word.is_empty() && !STOP.contains(word)) {
        if !words.iter().any(|own| own == word) {
            words.push(word.to_owned());
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_say_the_same_are_the_same() {
        for (one, other, is) in [
            ("peddled", "sold", true),
            ("begged", "asked", true),
            ("severed", "cut", true),
            ("girl", "daughter", true),
            ("unlit", "dark", true),
            ("boats", "boat", true),
            ("selling", "sell", true),
            ("rope", "hope", false),
            ("salt", "sold", false),
        ] {
            assert_eq!(same(one, other), is, "{one} {other}");
        }
        assert_eq!(content("The clerk sold the oil, and the oil was sold"), ["clerk", "sold", "oil"]);
    }
}
