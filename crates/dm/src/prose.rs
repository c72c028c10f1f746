//! A narrator's text, cleaned before a player sees it: what does not belong is taken out and reported, the rest is told.
//! `proposal` uses it; the patterns of decisions and names are those of `lint`.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use crate::lint::{self, ProseHit};
use crate::refs::normal;
use crate::state::State;
use crate::world::Cartridge;

/// Everything about the turn that a text is checked against.
pub struct ProseFilter<'a> {
    pub world: &'a Cartridge,
    pub state: &'a State,
    pub input: &'a str,
    pub pc: &'a str,
    /// Names that may be told although the cartridge does not have them: people filed before or now.
    pub filed: &'a [String],
}

/// A cleaned text, and one report per thing that was taken out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CleanedProse {
    pub text: String,
    pub reports: Vec<String>,
}

/// Escapes of a terminal: CSI, OSC, and the two-character ones.
static ESCAPES: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new("(?s)\u{1b}(?:\\[[0-?]*[ -/]*[@-~]|\\].*?(?:\u{7}|\u{1b}\\\\|$)|.|$)").ok());

/// The labels of the output, of a delta, of tables and headings: a block that begins with one is the kernel's to write.
static LABELS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let words = "scene|adjudication|result|next suggestions|hud|archive_delta|guide|error|initialize|ooc|act|look|ask|fight|cast|manage";
    let heads = "discoveries|nothing gained|consequences|a costly alternative|correction|summary|inner voice|load summary|epilogue|clue|cost";
    let bracket =
        format!(r"[\[【［〔]\s*(?:{words})\s*[\]】］〕]|(?m:^\s*[*_]{{1,3}}(?:{words}|{heads}):?[*_]{{1,3}}\s*$)");
    Regex::new(&format!(r"(?i){bracket}|<!--|-->|(?m:^\s*(?:{heads})\s*:)|(?m:^\s*[|#])|(?m:^\s*- \w+( \w+)?:)")).ok()
});

/// Marks that cannot be seen and change what is: zero width, direction, byte order.
fn invisible(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}')
}

/// The text without what a terminal obeys or an eye does not see.
fn plain(text: &str) -> String {
    let bare = ESCAPES.as_ref().map_or(text.into(), |regex| regex.replace_all(text, ""));
    let kept = |c: char| match c {
        '\t' => Some(' '),
        '\n' => Some('\n'),
        c if c.is_control() || invisible(c) => None,
        c => Some(c),
    };
    bare.chars().filter_map(kept).collect()
}

/// The ranges of the sentences; a quotation mark after the end belongs to it.
fn sentences(text: &str) -> Vec<Range<usize>> {
    let (mut found, mut start) = (Vec::new(), 0);
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        if !matches!(c, '.' | '!' | '?' | '。' | '！' | '？' | '\n') {
            continue;
        }
        let mut end = at + c.len_utf8();
        while let Some((_, next)) = chars.next_if(|(_, next)| matches!(next, '"' | '”' | '’' | '」' | '.' | '!' | '?'))
        {
            end += next.len_utf8();
        }
        found.push(start..end);
        start = end;
    }
    if start < text.len() {
        found.push(start..text.len());
    }
    found
}

/// A block from a label to the end of its paragraph.
fn labelled(text: &str) -> Option<Range<usize>> {
    let found = LABELS.as_ref()?.find(text)?;
    let end = text[found.start()..].find("\n\n").map_or(text.len(), |length| found.start() + length);
    Some(found.start()..end.max(found.end()))
}

/// The words of a secret in a row that tell it.
const RUN: usize = 6;

/// Whether `text` repeats `secret`: all of it, or so many of its words in a row.
fn repeats(text: &str, secret: &str, run: usize) -> bool {
    let words: Vec<&str> = secret.split(' ').filter(|word| !word.is_empty()).collect();
    let text = format!(" {text} ");
    !words.is_empty() && words.windows(words.len().min(run)).any(|run| text.contains(&format!(" {} ", run.join(" "))))
}

impl ProseFilter<'_> {
    /// A text that is told as it is, or in part, or not at all.
    pub fn clean(&self, raw: &str) -> CleanedProse {
        let mut out = CleanedProse::default();
        out.text = self.marks(raw, &mut out.reports);
        let mut hits = lint::agency(&out.text, self.input, self.pc);
        hits.extend(self.names(&out.text));
        hits.extend(self.secrets(&out.text));
        hits.extend(self.impossible(&out.text));
        hits.extend(lint::claims(&out.text, self.world));
        out.cut(&hits);
        out
    }

    /// An explanation of the rules: it may tell the player what to do, and name what it likes; it tells no secret.
    pub fn explanation(&self, raw: &str) -> CleanedProse {
        let mut out = CleanedProse::default();
        out.text = self.marks(raw, &mut out.reports);
        let hits = self.secrets(&out.text);
        out.cut(&hits);
        out
    }

    /// Sentences that say what the cartridge says never happens.
    fn impossible(&self, text: &str) -> Vec<ProseHit> {
        let broken = |part: &Range<usize>| {
            let said = normal(&text[part.clone()]);
            let words: Vec<&str> = said.split(' ').collect();
            let told = |phrase: &String| !phrase.is_empty() && phrase.split(' ').all(|word| words.contains(&word));
            self.world.invariants.iter().find(|own| own.never.iter().any(told))
        };
        let hit = |part: Range<usize>| {
            let report = format!("it breaks an invariant: {}", broken(&part)?.text);
            Some(ProseHit { range: part, report })
        };
        sentences(text).into_iter().filter_map(hit).collect()
    }

    /// Why a page that a narrator writes is not kept. Markdown and names are its purpose; one that is shown tells no secret.
    pub fn page_fault(&self, text: &str, shown: bool) -> Option<String> {
        if plain(text) != text.replace('\t', " ") {
            return Some("control characters do not stand in a page".into());
        }
        let hits = self.secrets(text).into_iter().chain(self.impossible(text));
        hits.map(|hit| hit.report).next().filter(|_| shown)
    }

    /// The reasons why a short text (an option, a reason) is not shown as it is. It may speak of what the player could do.
    pub fn faults(&self, text: &str) -> Vec<String> {
        let mut reports = Vec::new();
        let bare = self.marks(text, &mut reports);
        let hits = self.names(&bare).into_iter().chain(self.secrets(&bare)).chain(self.impossible(&bare));
        let hits = hits.chain(lint::claims(&bare, self.world));
        reports.extend(hits.map(|hit| hit.report));
        reports
    }

    /// The text without marks that are not prose: escapes, control characters, labels.
    fn marks(&self, raw: &str, reports: &mut Vec<String>) -> String {
        let mut text = plain(raw);
        if text != raw.replace('\t', " ") {
            reports.push("control characters were taken out".into());
        }
        while let Some(block) = labelled(&text) {
            let label = crate::md::clip(text[block.clone()].trim(), 40);
            let report = format!("\"{}\" is the kernel's to write", label.split('\n').next().unwrap_or_default());
            if !reports.contains(&report) {
                reports.push(report);
            }
            text.replace_range(block, "");
        }
        text.trim().to_owned()
    }

    fn names(&self, text: &str) -> Vec<ProseHit> {
        let mut known: Vec<&str> = self.filed.iter().map(String::as_str).collect();
        known.extend([self.pc, self.input]);
        let found = lint::unfiled(text, self.world, &known);
        let mut names: Vec<&str> = found.iter().map(|(_, name)| name.as_str()).collect();
        names.dedup();
        let report = format!("unfiled_npc: {} has no page", names.join(", "));
        found.iter().map(|(range, _)| ProseHit { range: range.clone(), report: report.clone() }).collect()
    }

    /// Sentences that repeat a line of the spine, or a hard secret that has not been told.
    fn secrets(&self, text: &str) -> Vec<ProseHit> {
        let all = self.untold();
        let parts = sentences(text);
        let mut hits = Vec::new();
        for (secret, report) in &all {
            let own = parts.iter().filter(|range| repeats(&normal(&text[(*range).clone()]), secret, RUN));
            let mut found: Vec<ProseHit> =
                own.map(|range| ProseHit { range: range.clone(), report: report.clone() }).collect();
            // A secret that is cut up into sentences is told by all of them.
            if found.is_empty() && repeats(&normal(text), secret, RUN) {
                found.push(ProseHit { range: 0..text.len(), report: report.clone() });
            }
            hits.extend(found);
        }
        hits
    }

    /// A report that repeats a part of a secret tells which one it is about instead: players read the session.
    pub fn discreet(&self, report: String) -> String {
        // A report quotes the beginning of a text, so a shorter run gives it away.
        let said = normal(&report);
        let told = self.untold().into_iter().find(|(secret, _)| repeats(&said, secret, RUN - 2));
        let field = report.split(": ").next().unwrap_or_default();
        told.map_or(report.clone(), |(_, why)| format!("{field}: {why}"))
    }

    /// The lines of the spine and the hard secrets that have not been told, each with the report about it.
    fn untold(&self) -> Vec<(String, String)> {
        let told = |handle: &str| self.state.told.get(handle).copied().unwrap_or(0).max(0) as usize;
        let hard = self.world.objects.iter().flat_map(|own| {
            let open = told(&own.handle).saturating_sub(own.easy_secrets.len());
            own.hard_secrets
                .iter()
                .skip(open)
                .map(move |secret| (normal(secret), format!("it tells a secret of {}", own.name)))
        });
        let spine = self.world.spine.iter().map(|line| (normal(line), "it tells a line of the spine".to_owned()));
        hard.chain(spine).collect()
    }
}

impl CleanedProse {
    /// Takes out the sentences that a hit touches.
    fn cut(&mut self, hits: &[ProseHit]) {
        let touched =
            |part: &Range<usize>| hits.iter().any(|hit| hit.range.start < part.end && part.start < hit.range.end);
        let kept: Vec<&str> =
            sentences(&self.text).into_iter().filter(|part| !touched(part)).map(|part| &self.text[part]).collect();
        let text = kept.concat().trim().to_owned();
        for hit in hits {
            if !self.reports.contains(&hit.report) {
                self.reports.push(hit.report.clone());
            }
        }
        self.text = text;
    }
}

#[cfg(test)]
mod tests;
