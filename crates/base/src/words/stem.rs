//! English words without their endings: the algorithm of M. F. Porter, "An algorithm for suffix stripping", 1980.

use std::borrow::Cow;

/// A folded word without its English endings, so that `repaired`, `repairing` and `repairs` meet. Words with other characters
/// than `a` to `z` stay as they are.
pub fn stem(word: &str) -> Cow<'_, str> {
    if word.len() <= 2 || !word.bytes().all(|byte| byte.is_ascii_lowercase()) {
        return Cow::Borrowed(word);
    }
    let mut stem = Stem(word.to_owned());
    stem.plural();
    stem.past();
    if stem.0.ends_with('y') && stem.has_vowel(stem.0.len() - 1) {
        stem.replace(1, "i");
    }
    stem.first_of(&DOUBLE, 1);
    stem.first_of(&SINGLE, 1);
    stem.last();
    stem.tidy();
    if stem.0 == word { Cow::Borrowed(word) } else { Cow::Owned(stem.0) }
}

/// Endings that are replaced where something is left before them: double ones, then single ones.
const DOUBLE: [(&str, &str); 21] = [
    ("ational", "ate"),
    ("tional", "tion"),
    ("enci", "ence"),
    ("anci", "ance"),
    ("izer", "ize"),
    ("bli", "ble"),
    ("alli", "al"),
    ("entli", "ent"),
    ("eli", "e"),
    ("ousli", "ous"),
    ("ization", "ize"),
    ("ation", "ate"),
    ("ator", "ate"),
    ("alism", "al"),
    ("iveness", "ive"),
    ("fulness", "ful"),
    ("ousness", "ous"),
    ("aliti", "al"),
    ("iviti", "ive"),
    ("biliti", "ble"),
    ("logi", "log"),
];
const SINGLE: [(&str, &str); 7] =
    [("icate", "ic"), ("ative", ""), ("alize", "al"), ("iciti", "ic"), ("ical", "ic"), ("ful", ""), ("ness", "")];
/// Endings that fall off where much is left.
const LAST: [&str; 19] = [
    "ement", "ance", "ence", "able", "ible", "ment", "ant", "ent", "ism", "ate", "iti", "ous", "ive", "ize", "ion",
    "al", "er", "ic", "ou",
];

struct Stem(String);

impl Stem {
    fn is_consonant(&self, at: usize) -> bool {
        match self.0.as_bytes()[at] {
            b'a' | b'e' | b'i' | b'o' | b'u' => false,
            b'y' => at == 0 || !self.is_consonant(at - 1),
            _ => true,
        }
    }

    fn has_vowel(&self, end: usize) -> bool {
        (0..end).any(|at| !self.is_consonant(at))
    }

    /// How often vowels are followed by consonants before `end`.
    fn measure(&self, end: usize) -> usize {
        (1..end).filter(|at| self.is_consonant(*at) && !self.is_consonant(at - 1)).count()
    }

    /// Whether it ends, before `end`, in consonant, vowel, consonant; the last none of `w`, `x`, `y`.
    fn is_short(&self, end: usize) -> bool {
        end >= 3
            && self.is_consonant(end - 3)
            && !self.is_consonant(end - 2)
            && self.is_consonant(end - 1)
            && !b"wxy".contains(&self.0.as_bytes()[end - 1])
    }

    fn is_double(&self) -> bool {
        let (bytes, end) = (self.0.as_bytes(), self.0.len());
        end >= 2 && bytes[end - 1] == bytes[end - 2] && self.is_consonant(end - 1)
    }

    fn replace(&mut self, length: usize, by: &str) {
        self.0.truncate(self.0.len() - length);
        self.0.push_str(by);
    }

    fn plural(&mut self) {
        if self.0.ends_with("sses") || self.0.ends_with("ies") {
            self.replace(2, "");
        } else if self.0.ends_with('s') && !self.0.ends_with("ss") {
            self.replace(1, "");
        }
    }

    fn past(&mut self) {
        if self.0.ends_with("eed") {
            if self.measure(self.0.len() - 3) > 0 {
                self.replace(1, "");
            }
            return;
        }
        let Some(length) = ["ed", "ing"].iter().find(|end| self.0.ends_with(**end)).map(|end| end.len()) else {
            return;
        };
        if !self.has_vowel(self.0.len() - length) {
            return;
        }
        self.replace(length, "");
        if ["at", "bl", "iz"].iter().any(|end| self.0.ends_with(end)) {
            self.0.push('e');
        } else if self.is_double() && !self.0.ends_with(['l', 's', 'z']) {
            self.replace(1, "");
        } else if self.measure(self.0.len()) == 1 && self.is_short(self.0.len()) {
            self.0.push('e');
        }
    }

    /// Replaces the first ending of a list that is there, if enough is left.
    fn first_of(&mut self, endings: &[(&str, &str)], least: usize) {
        if let Some((ending, by)) = endings.iter().find(|(ending, _)| self.0.ends_with(ending))
            && self.measure(self.0.len() - ending.len()) >= least
        {
            self.replace(ending.len(), by);
        }
    }

    fn last(&mut self) {
        let Some(ending) = LAST.iter().find(|ending| self.0.ends_with(**ending)) else { return };
        let end = self.0.len() - ending.len();
        let fits = *ending != "ion" || matches!(self.0.as_bytes().get(end.wrapping_sub(1)), Some(b's' | b't'));
        if fits && self.measure(end) > 1 {
            self.replace(ending.len(), "");
        }
    }

    fn tidy(&mut self) {
        let end = self.0.len();
        if self.0.ends_with('e') {
            let measure = self.measure(end - 1);
            if measure > 1 || measure == 1 && !self.is_short(end - 1) {
                self.replace(1, "");
            }
        }
        if self.0.ends_with("ll") && self.measure(self.0.len()) > 1 {
            self.replace(1, "");
        }
    }
}
