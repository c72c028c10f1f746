//! A narrator's text, cleaned before a player sees it: what does not belong is taken out and reported, the rest is told.
//! `proposal` and `turn` use it; the patterns of decisions and names are those of `lint`. A text is compared as the eye reads it
//! (`fold`), and told as it was written.

mod foreign;
pub mod secrets;
mod veils;
pub(crate) mod words;

use std::cell::OnceCell;
use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use crate::fold::{Folded, one_line, visible};
use crate::hud;
use crate::known::known;
use crate::lint::{self, ProseHit};
use crate::refs::normal;
use crate::state::State;
use crate::world::{Cartridge, ObjectKind};
use secrets::{OpenPages, RUN, SaidSentence, UntoldSecret};

/// Everything about the turn that a text is checked against.
pub struct ProseFilter<'a> {
    pub world: &'a Cartridge,
    pub state: &'a State,
    pub input: &'a str,
    pub pc: &'a str,
    /// Names that may be told although the cartridge does not have them: people filed before or now.
    pub filed: &'a [String],
    /// What the players want kept out of the story.
    pub lines_veils: &'a str,
    /// What is not to be told, made when it is first asked for.
    pub untold: UntoldSecrets<'a>,
}

/// The secrets of a world at one time, and what its pages tell openly.
pub type UntoldSecrets<'a> = OnceCell<(OpenPages<'a>, Vec<UntoldSecret>)>;

/// A cleaned text, and one report per thing that was taken out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CleanedProse {
    pub text: String,
    pub reports: Vec<String>,
}

/// The labels of the output, of a delta, of tables and headings: a block that begins with one is the kernel's to write. They are
/// looked for in a folded text.
static LABELS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let words = "scene|adjudication|result|next suggestions|hud|archive_delta|guide|error|initialize|ooc|act|look|ask|fight|cast|manage";
    let alone = "adjudication|next suggestions|hud|archive_delta|result|scene";
    let heads = "discoveries|nothing gained|consequences|a costly alternative|correction|summary|inner voice|load summary|epilogue|clue|cost|what can be done here";
    let bracket = format!(
        r"\[\s*(?:{words})\s*\]|(?m:^\s*[*_]{{1,3}}(?:{words}|{heads}):?[*_]{{1,3}}\s*$)|(?m:^[^\p{{L}}\p{{N}}\n]*(?:{alone})[^\p{{L}}\p{{N}}\n]*$)"
    );
    Regex::new(&format!(r"(?i){bracket}|<!--|-->|(?m:^\s*(?:{heads})\s*:)|(?m:^\s*[|#])|(?m:^\s*- \w+( \w+)?:)")).ok()
});

/// The ranges of the sentences; a quotation mark after the end belongs to it.
pub(crate) fn sentences(text: &str) -> Vec<Range<usize>> {
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
    let folded = Folded::new(text);
    let found = folded.back(&LABELS.as_ref()?.find(&folded.text)?.range());
    let end = text[found.start..].find("\n\n").map_or(text.len(), |length| found.start + length);
    // The words before it in its own sentence would be left as a stump.
    let line = text[..found.start].rfind('\n').map_or(0, |at| at + 1);
    let start = sentences(&text[line..found.start]).last().map_or(found.start, |part| line + part.start);
    let whole = text[..found.start].trim_end().ends_with(['.', '!', '?', '"', '”']);
    Some(if whole { found.start } else { start }..end.max(found.end))
}

impl<'a> ProseFilter<'a> {
    /// A text that is told as it is, or in part, or not at all.
    pub fn clean(&self, raw: &str) -> CleanedProse {
        let mut out = CleanedProse::default();
        out.text = self.marks(raw, &mut out.reports);
        let folded = Folded::new(&out.text);
        let mut hits = lint::agency(&folded.text, self.input, &Folded::new(self.pc).text);
        hits.extend(foreign::hits(&folded.text, false));
        hits.extend(self.folded_hits(&folded.text));
        let mut hits: Vec<ProseHit> = hits.into_iter().map(|hit| hit.back(&folded)).collect();
        hits.extend(self.names(&out.text));
        out.cut(&hits);
        out
    }

    /// What no text of a narrator may say, whatever it is for: secrets, impossible things, figures, what is kept out.
    fn folded_hits(&self, text: &str) -> Vec<ProseHit> {
        let mut hits = self.secrets(text);
        hits.extend(self.hidden_things(text));
        hits.extend(self.impossible(text));
        hits.extend(lint::claims(text, self.world));
        hits.extend(self.kept_out(text));
        hits
    }

    /// An explanation of the rules: it may tell the player what to do, and name what it likes; it tells no secret, and no figure
    /// that its page does not have.
    pub fn explanation(&self, raw: &str, page: &str) -> CleanedProse {
        let mut out = CleanedProse::default();
        out.text = self.marks(raw, &mut out.reports);
        let folded = Folded::new(&out.text);
        let figures = |text: &str| -> Vec<String> {
            text.split(|c: char| !c.is_numeric()).filter(|figure| !figure.is_empty()).map(str::to_owned).collect()
        };
        let (known, mut hits) = (figures(page), self.secrets(&folded.text));
        hits.extend(self.hidden_things(&folded.text));
        hits.extend(foreign::hits(&folded.text, false));
        hits.extend(self.kept_out(&folded.text));
        for part in sentences(&folded.text) {
            if let Some(figure) = figures(&folded.text[part.clone()]).into_iter().find(|own| !known.contains(own)) {
                hits.push(ProseHit { range: part, report: format!("the page has no figure {figure}") });
            }
        }
        let hits: Vec<ProseHit> = hits.into_iter().map(|hit| hit.back(&folded)).collect();
        out.cut(&hits);
        if out.text.split_whitespace().filter(|word| word.chars().any(char::is_alphabetic)).count() < 2
            && !out.text.chars().any(|c| c > '\u{2e7f}')
        {
            out.reports.push("it is no sentence".into());
            out.text.clear();
        }
        out
    }

    /// A message of another program, such as the error of a server, as a player's file may have it: on one line, without marks,
    /// labels, addresses and secrets.
    pub fn message(&self, raw: &str) -> String {
        // A label begins a line of its own there; what stands before it is the message.
        let lines: Vec<String> = visible(raw).lines().map(one_line).collect();
        let mut text = one_line(&self.marks(&lines.join("\n"), &mut Vec::new()));
        let folded = Folded::new(&text);
        let hits = foreign::hits(&folded.text, false).into_iter().chain(self.secrets(&folded.text));
        let mut ranges: Vec<Range<usize>> = hits.map(|hit| folded.back(&hit.range)).collect();
        ranges.sort_by_key(|range| std::cmp::Reverse((range.start, range.end)));
        for range in ranges {
            if range.end <= text.len() && text.is_char_boundary(range.start) && text.is_char_boundary(range.end) {
                text.replace_range(range, " … ");
            }
        }
        crate::md::clip(&one_line(&text), 160)
    }

    /// Sentences that tell of what the players want kept out.
    fn kept_out(&self, text: &str) -> Vec<ProseHit> {
        let words = veils::kept_out(self.lines_veils);
        let parts = sentences(text).into_iter().filter(|part| veils::tells(&text[part.clone()], &words));
        parts.map(|range| ProseHit { range, report: "it tells of what the players want kept out".into() }).collect()
    }

    /// Sentences that say where something lies that has not been found.
    fn hidden_things(&self, text: &str) -> Vec<ProseHit> {
        let names = |handle: &str| -> Vec<String> {
            let object = self.world.object(handle);
            let own = object.into_iter().flat_map(|own| std::iter::once(&own.name).chain(&own.aliases));
            own.map(|name| normal(name).trim_start_matches("the ").to_owned()).filter(|name| !name.is_empty()).collect()
        };
        let hidden = self.world.of(ObjectKind::Item).filter(|item| {
            self.state.status(self.world, &item.handle) == "hidden" && !known(self.state, self.world, item)
        });
        let hidden: Vec<(Vec<String>, Vec<String>)> =
            hidden.map(|item| (names(&item.handle), names(self.state.place_of(item)))).collect();
        let told = |part: &Range<usize>| {
            let said = format!(" {} ", normal(&text[part.clone()]));
            let says = |names: &Vec<String>| names.iter().any(|name| said.contains(&format!(" {name} ")));
            hidden.iter().any(|(thing, place)| says(thing) && says(place))
        };
        let parts = sentences(text).into_iter().filter(told);
        parts.map(|range| ProseHit { range, report: "it tells where something hidden lies".into() }).collect()
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
        if visible(text) != text.replace('\t', " ") {
            return Some("control characters do not stand in a page".into());
        }
        let folded = Folded::new(text);
        let mut hits = self.folded_hits(&folded.text);
        hits.extend(foreign::hits(&folded.text, false));
        hits.into_iter().map(|hit| hit.report).next().filter(|_| shown)
    }

    /// The reasons why a short text (an option, a reason) is not shown as it is. It may speak of what the player could do.
    pub fn faults(&self, text: &str) -> Vec<String> {
        let mut reports = Vec::new();
        let bare = self.marks(text, &mut reports);
        let folded = Folded::new(&bare);
        let hits = self.names(&bare).into_iter().chain(self.folded_hits(&folded.text));
        let hits = hits.chain(foreign::hits(&folded.text, true)).chain(self.unseen(&folded.text));
        reports.extend(hits.map(|hit| hit.report));
        reports
    }

    /// Handles of what the player has not met.
    fn unseen(&self, text: &str) -> Vec<ProseHit> {
        let handles = text.match_indices('@').map(|(at, _)| {
            let end =
                text[at + 1..].find(|c: char| !c.is_alphanumeric() && c != '_').map_or(text.len(), |end| at + 1 + end);
            at..end
        });
        let met = |handle: &str| {
            let hud = hud::entries(self.state, self.world).iter().any(|own| own.handle == handle);
            hud || self.world.object(handle).is_none_or(|object| known(self.state, self.world, object))
        };
        let unmet = handles.filter(|range| !met(&text[range.clone()]));
        unmet.map(|range| ProseHit { range, report: "it names what has not been met".into() }).collect()
    }

    /// The text without marks that are not prose: escapes, control characters, labels.
    fn marks(&self, raw: &str, reports: &mut Vec<String>) -> String {
        let mut text = visible(raw);
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
        let has = if names.len() > 1 { "have" } else { "has" };
        let report = format!("unfiled_npc: {} {has} no page", names.join(", "));
        found.iter().map(|(range, _)| ProseHit { range: range.clone(), report: report.clone() }).collect()
    }

    /// Sentences that tell a line of the spine, or a hard secret that has not been told, in its words or in others.
    fn secrets(&self, text: &str) -> Vec<ProseHit> {
        let part = |range: Range<usize>| {
            let said = normal(&text[range.clone()]);
            (range, SaidSentence::new(&said), said)
        };
        let parts: Vec<(Range<usize>, SaidSentence, String)> = sentences(text).into_iter().map(part).collect();
        let whole = normal(text);
        let (pages, untold) = self.untold();
        let mut hits = Vec::new();
        for secret in untold {
            let told =
                |said: &str, words: &SaidSentence| secret.repeated_in(said, RUN) || secret.paraphrased_in(words, pages);
            let own = parts.iter().filter(|(_, words, said)| told(said, words));
            let mut found: Vec<ProseHit> =
                own.map(|(range, ..)| ProseHit { range: range.clone(), report: secret.report.clone() }).collect();
            // A secret that is cut up into sentences is told by all of them.
            let in_one = parts.iter().any(|(.., said)| secret.repeated_in(said, RUN));
            if !in_one && secret.repeated_in(&whole, RUN) {
                found.push(ProseHit { range: 0..text.len(), report: secret.report.clone() });
            }
            hits.extend(found);
        }
        hits
    }

    /// A report as players read it in the session: on one line, without marks; one that repeats a part of a secret tells which one it
    /// is about instead.
    pub fn discreet(&self, report: &str) -> String {
        let report = one_line(report);
        // A report quotes the beginning of a text, so a shorter run gives it away.
        let quoted: Vec<&str> = lint::quotations(&report).map(|range| &report[range]).collect();
        let said = normal(&if quoted.is_empty() { report.clone() } else { quoted.join(" ") });
        let (words, (pages, untold)) = (SaidSentence::new(&said), self.untold());
        let told = untold.iter().find(|own| own.repeated_in(&said, RUN - 2) || own.paraphrased_in(&words, pages));
        let field = report.split(": ").next().unwrap_or_default();
        match told {
            Some(own) => format!("{field}: {}", own.report),
            None if !self.kept_out(&report).is_empty() => {
                format!("{field}: it tells of what the players want kept out")
            }
            None => report,
        }
    }

    /// The lines of the spine and the hard secrets that have not been told.
    fn untold(&self) -> &(OpenPages<'a>, Vec<UntoldSecret>) {
        self.untold.get_or_init(|| {
            let pages = OpenPages::new(self.world, self.state);
            let secrets = self.secrets_of(&pages);
            (pages, secrets)
        })
    }

    fn secrets_of(&self, pages: &OpenPages<'_>) -> Vec<UntoldSecret> {
        let told = |handle: &str| self.state.told.get(handle).copied().unwrap_or(0).max(0) as usize;
        let hard = self.world.objects.iter().flat_map(|own| {
            let open = told(&own.handle).saturating_sub(own.easy_secrets.len());
            let report = format!("it tells a secret of {}", own.name);
            let secrets = own.hard_secrets.iter().skip(open);
            secrets.map(move |secret| UntoldSecret::new(secret, Some(&own.handle), report.clone(), pages))
        });
        let spine = self.world.spine.iter();
        let spine = spine.map(|line| UntoldSecret::new(line, None, "it tells a line of the spine".into(), pages));
        hard.chain(spine).collect()
    }
}

impl CleanedProse {
    /// Takes out the sentences that a hit touches.
    pub(crate) fn cut(&mut self, hits: &[ProseHit]) {
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
