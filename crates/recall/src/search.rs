//! Finding pages by their words, so that one that nothing leads to can be found. The same question has the same answer,
//! and every point is accounted for.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;

use crate::index::{Index, Page};
use crate::resolve::Access;
use crate::words::words;

/// A word counts at most so often.
const OFTEN: u32 = 8;
/// For a word of the title, and for a title that holds the whole question.
const IN_TITLE: u64 = 8;
const WHOLE: u64 = 20;
/// So many of the best lift their neighbours, to this share of the best score.
const LIFTING: usize = 3;
const SHARE_PERCENT: u64 = 15;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Hit {
    pub path: String,
    pub title: String,
    pub score: u64,
    /// Where the score comes from.
    pub why: Vec<Reason>,
    /// A line of the page.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub snippet: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(tag = "because", rename_all = "snake_case")]
pub enum Reason {
    /// The word stands in the text so often; the rarer it is in the wiki, the more it weighs.
    Text { word: String, count: u32, weight: u64, points: u64 },
    /// The word stands in the title.
    Title { word: String, points: u64 },
    /// The title holds the question.
    Whole { points: u64 },
    /// A page that was found links here, or is linked from here.
    Linked { with: String, points: u64 },
}

impl Index {
    /// The best pages for a question.
    pub fn search(&self, query: &str, access: Access, limit: usize) -> Vec<Hit> {
        let asked: BTreeSet<String> = words(query).into_iter().collect();
        let total = self.len().max(1) as u64;
        let mut hits: BTreeMap<Arc<str>, Vec<Reason>> = BTreeMap::new();
        let visible = |page: &Page| access == Access::Raw || !page.class.excluded();
        for word in &asked {
            let having: Vec<_> = self.having(word).filter(|(page, _)| visible(page)).collect();
            let weight = 1 + u64::from((total / having.len().max(1) as u64).max(1).ilog2());
            for (page, count) in having {
                let points = u64::from(count.min(OFTEN)) * weight;
                let reason = Reason::Text { word: word.clone(), count, weight, points };
                hits.entry(page.path.clone()).or_default().push(reason);
            }
        }
        let whole = words(query).join(" ");
        for word in &asked {
            for page in self.titled_with(word).filter(|page| visible(page)) {
                let why = hits.entry(page.path.clone()).or_default();
                why.push(Reason::Title { word: word.clone(), points: IN_TITLE });
                let known = why.contains(&Reason::Whole { points: WHOLE });
                if !known && words(page.title()).join(" ").contains(&whole) {
                    why.push(Reason::Whole { points: WHOLE });
                }
            }
        }
        let mut ranked: Vec<Hit> =
            hits.into_iter().filter_map(|(path, why)| Some(hit(self.page(&path)?, why))).collect();
        sort(&mut ranked);
        self.lift(&mut ranked, &visible);
        ranked.truncate(limit);
        ranked
    }

    /// Neighbours of the best are at least worth a look.
    fn lift(&self, ranked: &mut Vec<Hit>, visible: &dyn Fn(&Page) -> bool) {
        let Some(least) = ranked.first().map(|best| best.score * SHARE_PERCENT / 100).filter(|least| *least > 0) else {
            return;
        };
        let best: Vec<String> = ranked.iter().take(LIFTING).map(|hit| hit.path.clone()).collect();
        let mut place: BTreeMap<String, usize> =
            ranked.iter().enumerate().map(|(number, hit)| (hit.path.clone(), number)).collect();
        for with in best {
            let Some(page) = self.page(&with) else { continue };
            let mut near: BTreeSet<String> = self.links_of(page).into_iter().filter_map(|link| link.to).collect();
            near.extend(self.backlinks(page));
            for path in near {
                let Some(page) = self.page(&path).filter(|page| visible(page)) else { continue };
                let number = *place.entry(path).or_insert_with(|| {
                    ranked.push(hit(page, Vec::new()));
                    ranked.len() - 1
                });
                let found = &mut ranked[number];
                if found.score < least {
                    found.why.push(Reason::Linked { with: with.clone(), points: least - found.score });
                    found.score = least;
                }
            }
        }
        sort(ranked);
    }
}

fn hit(page: &Page, why: Vec<Reason>) -> Hit {
    let score = why.iter().map(Reason::points).sum();
    Hit { path: page.path.to_string(), title: page.title().to_owned(), score, why, snippet: String::new() }
}

fn sort(hits: &mut [Hit]) {
    hits.sort_by(|a, b| b.score.cmp(&a.score).then_with(|| a.path.cmp(&b.path)));
}

impl Reason {
    fn points(&self) -> u64 {
        match self {
            Reason::Text { points, .. }
            | Reason::Title { points, .. }
            | Reason::Whole { points }
            | Reason::Linked { points, .. } => *points,
        }
    }
}

/// The first line that has a word of the question; else the first line of text.
pub fn snippet(body: &str, query: &str) -> String {
    let asked = words(query);
    let lines = || body.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let has = |line: &&str| words(line).iter().any(|word| asked.contains(word));
    lines().find(has).or_else(|| lines().next()).unwrap_or_default().chars().take(200).collect()
}

#[cfg(test)]
mod tests;
