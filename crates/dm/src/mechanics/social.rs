//! Talk and search: the difficulties of persuasion, insight and searching.

use super::{number, table};
use crate::world::Fault;

const PAGE: &str = "mechanics/SOCIAL_INVESTIGATION.md";

#[derive(Clone, Debug, PartialEq)]
pub struct Approach {
    pub name: String,
    pub low: i64,
    pub high: i64,
    /// The cost of a failure, as effects.
    pub risk: String,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Search {
    pub name: String,
    pub dc: i64,
    pub minutes: i64,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct SocialRules {
    pub approaches: Vec<Approach>,
    pub searches: Vec<Search>,
}

impl SocialRules {
    pub fn read(text: &str) -> Result<Self, Fault> {
        let approaches = table(PAGE, text, "SOCIAL::approach", &["approach", "low", "high", "risk"])?;
        let mut rules = SocialRules::default();
        for row in &approaches.rows {
            rules.approaches.push(Approach {
                name: approaches.get(row, "approach").to_owned(),
                low: number(PAGE, &approaches, row, "low")?,
                high: number(PAGE, &approaches, row, "high")?,
                risk: approaches.get(row, "risk").to_owned(),
            });
        }
        let searches = table(PAGE, text, "SOCIAL::search", &["search", "dc", "minutes"])?;
        for row in &searches.rows {
            let (dc, minutes) = (number(PAGE, &searches, row, "dc")?, number(PAGE, &searches, row, "minutes")?);
            rules.searches.push(Search { name: searches.get(row, "search").to_owned(), dc, minutes });
        }
        Ok(rules)
    }

    /// The kind of search that the words name, the most particular one first; none where they only look.
    pub fn search(&self, words: &str) -> Option<&Search> {
        let named = self.searches.iter().rev().filter(|search| !matches!(search.name.as_str(), "look" | "search"));
        named.into_iter().find(|search| crate::verbs::says(words, &search.name))
    }

    /// The approach that the words of a sentence name; persuasion where they name none.
    pub fn approach(&self, words: &str) -> Option<&Approach> {
        let lower = words.to_lowercase();
        let named = |approach: &&Approach| match approach.name.as_str() {
            "deception" => ["lie", "deceive", "pretend", "bluff"].iter().any(|word| lower.contains(word)),
            "intimidation" => ["threaten", "intimidate", "scare"].iter().any(|word| lower.contains(word)),
            "performance" => ["sing", "perform", "play"].iter().any(|word| lower.contains(word)),
            _ => false,
        };
        self.approaches.iter().find(named).or_else(|| self.approaches.iter().find(|own| own.name == "persuasion"))
    }
}

/// The insight into a person's intention.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Insight {
    SeesThrough,
    Suspicious,
    None,
    Believes,
}

pub fn insight_dc(target_insight: i64, level: i64) -> i64 {
    8 + target_insight + level
}

/// `gap` is the total less the difficulty.
pub fn insight(gap: i64) -> Insight {
    match gap {
        10.. => Insight::SeesThrough,
        5..10 => Insight::Suspicious,
        0..5 => Insight::None,
        _ => Insight::Believes,
    }
}

/// The difficulty of breaking a person's silence; `None` if no question can.
pub fn interrogation(will: &str) -> Option<i64> {
    match will {
        "weak" => Some(10),
        "firm" => Some(15),
        "iron" => Some(20),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::SharedEngine;

    #[test]
    fn row_72_the_gap_tells_what_is_seen() {
        let seen = [10, 7, 3, -1].map(insight);
        assert_eq!(seen, [Insight::SeesThrough, Insight::Suspicious, Insight::None, Insight::Believes]);
        assert_eq!(insight_dc(2, 3), 13);
        assert_eq!(["weak", "firm", "iron", "fanatic"].map(interrogation), [Some(10), Some(15), Some(20), None]);
    }

    #[test]
    fn the_words_choose_the_approach() {
        let rules = &SharedEngine::default().rules.social;
        let found = ["lie to her", "threaten him", "ask about the bell"].map(|words| rules.approach(words).unwrap());
        let shown: Vec<_> = found.iter().map(|own| (own.name.as_str(), own.low, own.high)).collect();
        assert_eq!(shown, [("deception", 12, 18), ("intimidation", 12, 20), ("persuasion", 10, 20)]);
        let dcs = ["footprints", "documents", "code", "burned papers"]
            .map(|name| rules.searches.iter().find(|search| search.name == name).unwrap().dc);
        assert_eq!(dcs, [12, 14, 18, 22]);
    }
}
