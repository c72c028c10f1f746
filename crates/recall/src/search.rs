//! Finding pages by their words, so that one that nothing leads to can be found. The same question has the same answer,
//! and every point is accounted for.
//!
//! Whoever has the pages finds those that may answer; here they are ranked. Each word of the question counts by its rarity
//! (BM25): in the text by how often it stands there for the length of the page, in title, other names, headings and the first
//! lines by how much of them it is. Words of the question that stand near each other say more than the same words apart.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use schemars::JsonSchema;
use serde::Serialize;

use crate::index::{Index, Page};
use crate::page::{body, headings};
use acheron_base::words::{each_word, is_beginning, stem, telling, words};

/// The constants of BM25: how soon more of the same word adds nothing, and how much a long page must have more of it.
const SOON: f64 = 1.6;
const LENGTH: f64 = 0.75;
/// How much more a word says by where it stands. Chosen with the questions of `benches/proof/recall/questions.tsv`.
const TITLE: f64 = 0.4;
const HEADING: f64 = 0.3;
const LEAD: f64 = 4.0;
/// How much more words of the title and of other names say, if they are the whole question.
const WHOLE: f64 = 1.5;
/// The words at the beginning of a page that tell what it is about.
const LEAD_WORDS: usize = 20;
/// So many other words halve what a word says in a short part of a page.
const OTHERS: f64 = 20.0;
/// The share of the points that a page keeps if it has next to nothing of the question.
const KEPT: f64 = 0.4;
/// How much more words say that stand within so many words of each other, and how steeply that grows with their share of the
/// question.
const NEAR: f64 = 1.5;
const NEAR_WORDS: u32 = 20;
const NEAR_POWER: f64 = 1.5;
/// So many of the best lift their neighbours, each so many, to this share of the best score.
const LIFTING: usize = 3;
const NEIGHBOURS: usize = 8;
const SHARE_PERCENT: u64 = 15;
/// Points are shown in hundredths.
const UNIT: f64 = 100.0;

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
    Text { word: String, count: u32, points: u64 },
    /// The word stands in the title.
    Title { word: String, points: u64 },
    /// The word stands in the first heading or in an alias.
    Name { word: String, points: u64 },
    /// The word stands in another heading.
    Heading { word: String, points: u64 },
    /// The word stands in the first lines.
    Lead { word: String, points: u64 },
    /// The words stand near each other.
    Near { words: Vec<String>, points: u64 },
    /// A page that was found links here, or is linked from here.
    Linked { with: String, points: u64 },
}

/// A question, and what the wiki knows of its words.
pub struct Question {
    /// Each stem once, in order, with its rarity.
    words: Vec<(String, f64)>,
    usual: f64,
}

impl Question {
    /// The stems that a question asks for, each once.
    pub fn asked(query: &str) -> Vec<String> {
        let stems: BTreeSet<String> = telling(query).into_iter().collect();
        stems.into_iter().collect()
    }

    /// `counts` says in how many of the pages each stem stands.
    pub fn new(counts: Vec<(String, u64)>, pages: u64, words: u64) -> Question {
        let all = pages.max(1) as f64;
        let rarity = |count: u64| (1.0 + (all - (count as f64).min(all) + 0.5) / (count as f64 + 0.5)).ln();
        let words_per_page = (words as f64 / all).max(1.0);
        Question {
            words: counts.into_iter().map(|(stem, count)| (stem, rarity(count))).collect(),
            usual: words_per_page,
        }
    }

    /// The points of one page.
    pub fn hit(&self, page: &Page, text: &str) -> Hit {
        let inner = body(text);
        let Counted { counts, places, length } = self.counted(inner);
        let titled = Field::of([page.title()]);
        let named = Field::of(page.names.iter().map(String::as_str));
        let headed = Field::of(headings(inner).into_iter().filter(|it| it.level > 1).map(|it| it.text));
        let lead = Field::of([lead(inner)]);
        let damping = SOON * (1.0 - LENGTH + LENGTH * f64::from(length) / self.usual);
        let found: f64 = self
            .words
            .iter()
            .filter(|(stem, _)| count_of(&counts, stem).is_some() || titled.has(stem))
            .map(|it| it.1)
            .sum();
        let all: f64 = self.words.iter().map(|it| it.1).sum();
        let covered = KEPT + (1.0 - KEPT) * found / all.max(f64::MIN_POSITIVE);
        // How much of the question stands in a part of the page.
        let part = |field: &Field| {
            let there = self.words.iter().filter(|(stem, _)| field.has(stem));
            there.map(|it| it.1).sum::<f64>() / all.max(f64::MIN_POSITIVE)
        };
        let points = |value: f64| (value * covered * UNIT).round() as u64;
        let mut why = Vec::new();
        for (stem, rarity) in &self.words {
            let word = || stem.clone();
            if let Some(count) = count_of(&counts, stem) {
                let often = f64::from(count) * (SOON + 1.0) / (f64::from(count) + damping);
                why.push(Reason::Text { word: word(), count, points: points(rarity * often) });
            }
            let mut add = |field: &Field, weight: f64, reason: fn(String, u64) -> Reason| {
                let value = points(rarity * weight * field.share(stem));
                if value > 0 {
                    why.push(reason(word(), value));
                }
            };
            add(&titled, TITLE + WHOLE * part(&titled).powi(3), |word, points| Reason::Title { word, points });
            add(&named, TITLE + WHOLE * part(&named).powi(3), |word, points| Reason::Name { word, points });
            add(&headed, HEADING, |word, points| Reason::Heading { word, points });
            add(&lead, LEAD, |word, points| Reason::Lead { word, points });
        }
        let (together, words) = self.nearest(&places);
        // One word is near nothing.
        if words.len() > 1 {
            let share = together / all.max(f64::MIN_POSITIVE);
            why.push(Reason::Near { words, points: points(NEAR * together * share.powf(NEAR_POWER)) });
        }
        hit(page, why)
    }

    fn counted(&self, text: &str) -> Counted {
        let mut found = Counted::default();
        each_word(text, |word| {
            let stem = stem(word);
            let meant = |asked: &str| asked == stem || is_beginning(asked) && stem.starts_with(asked);
            let asked = self.words.iter().position(|(asked, _)| meant(asked));
            found.places.extend(asked.map(|asked| (found.length, asked)));
            *found.counts.entry(stem.into_owned()).or_default() += 1;
            found.length += 1;
        });
        found
    }

    /// The most of the question that stands within a few words of each other: the sum of the rarities, and the words.
    fn nearest(&self, places: &[(u32, usize)]) -> (f64, Vec<String>) {
        let (mut best, mut words) = (0.0, BTreeSet::new());
        let mut from = 0;
        for (end, (at, _)) in places.iter().enumerate() {
            while places[from].0 + NEAR_WORDS <= *at {
                from += 1;
            }
            let here: BTreeSet<usize> = places[from..=end].iter().map(|it| it.1).collect();
            let sum = here.iter().map(|asked| self.words[*asked].1).sum();
            if sum > best {
                (best, words) = (sum, here);
            }
        }
        (best, words.into_iter().map(|asked| self.words[asked].0.clone()).collect())
    }
}

/// The words of a short part of a page.
struct Field {
    words: BTreeSet<String>,
}

impl Field {
    fn of<'a>(parts: impl IntoIterator<Item = &'a str>) -> Field {
        Field { words: parts.into_iter().flat_map(words).collect() }
    }

    fn has(&self, stem: &str) -> bool {
        self.words.contains(stem) || is_beginning(stem) && self.words.iter().any(|word| word.starts_with(stem))
    }

    /// 1 for a word that is all of it, less the more other words there are.
    fn share(&self, stem: &str) -> f64 {
        let others = self.words.len().saturating_sub(1) as f64;
        if self.has(stem) { 1.0 / (1.0 + others / OTHERS) } else { 0.0 }
    }
}

fn count_of(counts: &HashMap<String, u32>, stem: &str) -> Option<u32> {
    if is_beginning(stem) {
        let sum = counts.iter().filter(|(word, _)| word.starts_with(stem)).map(|it| it.1).sum();
        return (sum > 0).then_some(sum);
    }
    counts.get(stem).copied()
}

/// The first words of a text that are no heading.
fn lead(text: &str) -> &str {
    let begin = text.split_inclusive('\n').take_while(|line| line.trim().is_empty() || line.starts_with('#'));
    let rest = &text[begin.map(str::len).sum::<usize>()..];
    let mut ends = rest.char_indices().filter(|(_, c)| c.is_whitespace()).map(|(at, _)| at);
    &rest[..ends.nth(LEAD_WORDS).unwrap_or(rest.len())]
}

/// A text, counted.
#[derive(Default)]
struct Counted {
    /// How often each stem stands there.
    counts: HashMap<String, u32>,
    /// Where words of the question stand, and which.
    places: Vec<(u32, usize)>,
    length: u32,
}

impl Index {
    /// Sorts hits; neighbours of the best are at least worth a look. `visible` says which pages may be shown.
    pub fn ranked(&self, mut hits: Vec<Hit>, limit: usize, visible: &dyn Fn(&Page) -> bool) -> Vec<Hit> {
        hits.retain(|hit| hit.score > 0);
        sort(&mut hits);
        self.lift(&mut hits, visible);
        hits.truncate(limit);
        hits
    }

    fn lift(&self, ranked: &mut Vec<Hit>, visible: &dyn Fn(&Page) -> bool) {
        let Some(least) = ranked.first().map(|best| best.score * SHARE_PERCENT / 100).filter(|least| *least > 0) else {
            return;
        };
        let best: Vec<String> = ranked.iter().take(LIFTING).map(|hit| hit.path.clone()).collect();
        let mut place: BTreeMap<String, usize> =
            ranked.iter().enumerate().map(|(number, hit)| (hit.path.clone(), number)).collect();
        for with in best {
            let Some(page) = self.page(&with) else { continue };
            let mut near: BTreeSet<String> =
                self.links_of(page).into_iter().filter_map(|link| link.to).take(NEIGHBOURS).collect();
            near.extend(self.backlinks(page).into_iter().take(NEIGHBOURS));
            for path in near.into_iter().take(NEIGHBOURS) {
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
            | Reason::Name { points, .. }
            | Reason::Heading { points, .. }
            | Reason::Lead { points, .. }
            | Reason::Near { points, .. }
            | Reason::Linked { points, .. } => *points,
        }
    }
}

/// The line that has the most words of the question; else the first line of text.
pub fn snippet(body: &str, query: &str) -> String {
    let asked = Question::asked(query);
    let lines = || body.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let many = |line: &str| words(line).iter().filter(|word| asked.contains(word)).collect::<BTreeSet<_>>().len();
    let mut best = (0, lines().next().unwrap_or_default());
    for line in lines() {
        let count = many(line);
        if count > best.0 {
            best = (count, line);
        }
    }
    best.1.chars().take(200).collect()
}

#[cfg(test)]
mod tests;
