//! Checks prose: its length, that it does not decide or speak for the player's character, and that every person in it has a page.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use crate::fold::Folded;
use crate::refs::normal;
use crate::world::Cartridge;

/// Sentences, by their ends. An abbreviation counts as an end; prose for a scene can do without.
pub fn sentences(text: &str) -> usize {
    let ends = text.split_inclusive(['.', '!', '?', '。', '！', '？']);
    ends.filter(|part| part.chars().any(char::is_alphanumeric)).count()
}

/// A scene has two to four sentences.
pub fn scene(text: &str) -> Result<(), String> {
    match sentences(text) {
        2..=4 => Ok(()),
        count => Err(format!("a scene has 2-4 sentences, this one has {count}")),
    }
}

/// What may not stand in prose, and where. The prose is told without the sentences that it touches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProseHit {
    pub range: Range<usize>,
    pub report: String,
}

impl ProseHit {
    /// The same in the text that was folded.
    pub fn back(self, folded: &Folded) -> ProseHit {
        ProseHit { range: folded.back(&self.range), report: self.report }
    }
}

/// What a player's character does not do, say or think unless the player typed it. Each has a name for its tests.
const AGENCY: [(&str, &str); 7] = [
    (
        "decides",
        r"(?i)\byou\s+(?:\w+ly\s+)?(?:decide|choose|agree|promise|resolve|vow|swear|confess|refuse|accept|think|believe|realise|realize|want|feel|remember|consent|surrender|yield|trust|forgive)\b",
    ),
    ("says", r"(?i)\byou\s+(?:\w+ly\s+)?(?:say|answer|reply|shout|whisper|tell|ask|mutter|speak|beg|lie)\b"),
    (
        "acts",
        r"(?i)\byou\s+(?:\w+ly\s+)?(?:draw|attack|strike|stab|kill|pay|give|hand|sign|kiss|flee|run|kneel|bow|nod|drink|steal|follow|jump|leap)\b",
    ),
    (
        "compelled",
        r"(?i)\byou\s+(?:find\s+yourself|cannot\s+help|can't\s+help|can’t\s+help|have\s+no\s+choice|will\s+have\s+to)\b",
    ),
    (
        "character",
        r"(?i)\byour\s+(?:character|heart|mind|conscience)\s+(?:decides|chooses|agrees|says|knows|wants|tells)\b",
    ),
    ("without", r"(?i)\bwithout\s+(?:hesitation|thinking|a\s+second\s+thought),?\s+you\b"),
    ("chinese", r"你(?:决定|选择|同意|说|回答|喊|想|拔出|攻击|逃)"),
];

/// The same of the character by name.
const NAMED: &str = r"\s+(?:\w+ly\s+)?(?:decides|chooses|agrees|promises|vows|swears|confesses|refuses|accepts|thinks|believes|wants|feels|says|answers|replies|shouts|whispers|tells|asks|nods|kneels|surrenders|draws|attacks|strikes|pays|flees)\b";

static AGENCIES: LazyLock<Vec<Regex>> =
    LazyLock::new(|| AGENCY.iter().filter_map(|(_, pattern)| Regex::new(pattern).ok()).collect());

static QUOTED: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r#"["“]([^"”]{1,400})["”]"#).ok());

/// Where prose takes the character out of the player's hands. What the player typed may be repeated.
pub fn agency(text: &str, input: &str, pc: &str) -> Vec<ProseHit> {
    let (said, pc) = (normal(input), pc.trim());
    let named =
        Some(pc).filter(|pc| !pc.is_empty()).and_then(|pc| Regex::new(&format!("{}{NAMED}", regex::escape(pc))).ok());
    let mut hits = Vec::new();
    for found in AGENCIES.iter().chain(&named).flat_map(|regex| regex.find_iter(text)) {
        let verb = normal(found.as_str()).split(' ').next_back().unwrap_or_default().to_owned();
        if said.split(' ').any(|word| word == verb || word == verb.trim_end_matches('s')) {
            continue;
        }
        let report = format!("\"{}\" decides or speaks for the player's character", found.as_str());
        hits.push(ProseHit { range: found.range(), report });
    }
    hits.extend(spoken(text, &said, pc));
    hits
}

/// The quotations of a text, with their marks.
pub(crate) fn quotations(text: &str) -> impl Iterator<Item = Range<usize>> {
    QUOTED.as_ref().into_iter().flat_map(|regex| regex.find_iter(text)).map(|found| found.range())
}

/// Words of speech, as they stand beside a quotation.
const SPEECH: &str = "say|says|said|ask|asks|asked|answer|answers|reply|replies|tell|tells|call|calls|shout|shouts|whisper|whispers|mutter|mutters|cry|cries|add|adds|murmur|murmurs|begin|begins|hear\\s+yourself";

/// A word of speech with the word before it, or with the one after it.
static TAGS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(&format!(r"(?i)\b(\p{{L}}+)\s+(?:\w+ly\s+)?(?:{SPEECH})\b|\b(?:{SPEECH})\s+(\p{{L}}+)")).ok()
});

/// Who speaks by each tag of a clause, in lower case.
fn speakers(clause: &str) -> Vec<String> {
    let first = normal(clause).split(' ').next().unwrap_or_default().to_owned();
    let found = TAGS.as_ref().into_iter().flat_map(|regex| regex.captures_iter(clause));
    let who = found.filter_map(|tag| Some(tag.get(1).or_else(|| tag.get(2))?.as_str().to_lowercase()));
    // "Jun turns to you and says": it is Jun who says it.
    who.map(|word| if matches!(word.as_str(), "and" | "then" | "but") { first.clone() } else { word }).collect()
}

/// Quotations that are put into the mouth of the player's character. A quotation belongs to the speaker who is named beside it; only
/// where that is the character, or nobody, and the character has just been about to speak, is it theirs.
fn spoken(text: &str, said: &str, pc: &str) -> Vec<ProseHit> {
    let pc = normal(pc);
    let is_pc = |word: &String| word == "you" || pc.split(' ').any(|own| own == word);
    let ends = ['.', '!', '?', '\n', '"', '“', '”'];
    let mut hits = Vec::new();
    for quote in quotations(text) {
        let inner = text[quote.clone()].trim_matches(['"', '“', '”']);
        if said.contains(&normal(inner)) {
            continue;
        }
        let (before, after) = (&text[..quote.start], &text[quote.end..]);
        let clause = before.rsplit(ends).next().unwrap_or_default();
        let tail = after.split(ends).next().unwrap_or_default();
        let beside = speakers(tail).into_iter().next().or_else(|| speakers(clause).pop());
        // A sentence beside a quotation that has no speaker: "You tell him so."
        let next = after.trim_start().split(ends).next().unwrap_or_default();
        let last = before.trim_end().trim_end_matches(ends).rsplit(ends).next().unwrap_or_default();
        let of_character = |part: &str| normal(part).starts_with("you ") && first_person(inner);
        let theirs = match beside {
            Some(who) => is_pc(&who),
            None if !clause.trim().is_empty() || !tail.trim().is_empty() => of_character(clause) || of_character(tail),
            None => of_character(last) || of_character(next),
        };
        if theirs {
            let report = format!("the player's character is made to say \"{}\"", crate::md::clip(inner, 40));
            hits.push(ProseHit { range: quote, report });
        }
    }
    hits
}

/// Whether a speech speaks of its speaker.
fn first_person(speech: &str) -> bool {
    normal(speech).split(' ').any(|word| matches!(word, "i" | "my" | "me" | "we" | "our"))
}

/// What only the kernel tells, in its own form: changes of levels, hit points, throws, what becomes of a quest. A narrator's figure
/// beside the kernel's would be a second truth. Each has a name for its tests.
const CLAIMS: [(&str, &str); 6] = [
    ("change", r"[\p{L}_]+\s+[+-]?\d+(?:/\d+)?\s*(?:->|→|⇒|=>)\s*[+-]?\d+(?:/\d+)?"),
    ("hit points", r"(?i)\b(?:HP|hit\s+points)\s*(?:[:=]\s*|is\s+(?:now\s+)?|are\s+(?:now\s+)?)?[+-]?\d+"),
    (
        "hit points in words",
        r"(?i)\b(?:a|an|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|some|all|more|many|several|\d+)\s+(?:more\s+|of\s+\w+\s+)?(?:hit\s+points?|HP)\b|\bpoints?\s+of\s+(?:damage|health)\b",
    ),
    ("throw", r"(?i)\b\d*d20\s*\([^)]*\)[^\s]*(?:\s+vs\s+DC\s+\d+)?|\bDC\s+\d+"),
    (
        "end of a quest",
        r"(?i)\bquest\b[^.!?\n]{0,60}?\b(?:is|are|has\s+been|have\s+been)\s+(?:now\s+|at\s+last\s+)?(?:done|failed|complete|completed|over|finished|fulfilled)\b|\b(?:completed?|completes|finish(?:es|ed)?|fulfil(?:s|led)?|fail(?:s|ed)?)\s+(?:the|a|your|this|that|his|her|their)\s+(?:\w+\s+){0,3}quest\b",
    ),
    ("quest", r"(?i)\bquest\b[^.!?\n]{0,60}?:\s*(?:done|failed|active|hidden|complete)\b"),
];

static CLAIMED: LazyLock<Vec<Regex>> =
    LazyLock::new(|| CLAIMS.iter().filter_map(|(_, pattern)| Regex::new(pattern).ok()).collect());

/// A word with a figure after it.
static LEVEL: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let moves =
        r"(?:rises|falls|climbs|drops|sinks|goes|jumps|grows|increases|decreases)\s+(?:up\s+|down\s+)?(?:to|by)\s+";
    let words = "zero|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve";
    let joint = format!(r"[:=]\s*|is\s+(?:now\s+)?|stands\s+at\s+|{moves}");
    Regex::new(&format!(r"\b([\p{{L}}_]+)\s*(?:(?:{joint})?[+-]?\d+|(?:{joint})(?:{words})\b)")).ok()
});

/// Where a text claims what only the kernel tells; a level of this world with a figure is such a claim too.
pub fn claims(text: &str, world: &Cartridge) -> Vec<ProseHit> {
    let level = |name: &str| {
        world.indicators.iter().any(|own| own.name == name) || world.clocks.iter().any(|own| own.id == name)
    };
    let levels = LEVEL.as_ref().into_iter().flat_map(|regex| regex.captures_iter(text));
    let levels = levels.filter(|found| level(&found[1])).filter_map(|found| found.get(0));
    let found = CLAIMED.iter().flat_map(|regex| regex.find_iter(text)).chain(levels);
    let report = |claim: &str| format!("\"{}\" is the kernel's to tell", crate::md::clip(claim, 40));
    found.map(|own| ProseHit { range: own.range(), report: report(own.as_str()) }).collect()
}

/// The words that nobody need have a page for: those of the cartridge's objects, and the given ones.
fn familiar(world: &Cartridge, known: &[&str]) -> Vec<String> {
    let mut familiar: Vec<String> = known.iter().map(|text| normal(text)).collect();
    for object in &world.objects {
        familiar.push(normal(&object.name));
        familiar.extend(object.aliases.iter().map(|alias| normal(alias)));
        familiar.push(object.handle.trim_start_matches('@').replace('_', " "));
        familiar.extend(object.fields.get("location").cloned());
    }
    familiar.extend(world.files.get("CARTRIDGE.md").map(|text| normal(text)));
    familiar
}

/// How somebody is brought in by name, whatever its case.
const INTRODUCED: [(&str, &str); 3] = [
    (
        "title",
        r"\b(?:Baron|Baroness|Lord|Lady|Captain|Master|Mistress|Father|Mother|Brother|Sister|Doctor|King|Queen|Prince|Princess|Saint|Mr|Mrs|Dr)\.?\s+(\p{Lu}\p{L}+)",
    ),
    (
        "introduced",
        r"(?i)\b(?:named|whose name is|known as|goes by|calls himself|calls herself)\s+(?:the\s+)?(\p{L}{2,})",
    ),
    // A stranger at the head of a sentence is closed in by two commas; "Outside, a shutter knocks" has one.
    ("apposition", r"(?:^|[.!?]\s+)(\p{Lu}\p{L}+), (?:the|a|an) \p{Ll}+(?: \p{Ll}+){0,4}, \p{Ll}"),
];

static INTRODUCTIONS: LazyLock<Vec<Regex>> =
    LazyLock::new(|| INTRODUCED.iter().filter_map(|(_, pattern)| Regex::new(pattern).ok()).collect());

/// Names in the prose without a page: capitalised words within a sentence, words in capitals, introductions, unknown handles.
pub fn unfiled(text: &str, world: &Cartridge, known: &[&str]) -> Vec<(Range<usize>, String)> {
    let familiar = familiar(world, known);
    let is_known = |word: &str| familiar.iter().any(|text| text.split(' ').any(|own| own == word));
    let mut found: Vec<(Range<usize>, String)> = Vec::new();
    let mut first = true;
    for word in text.split_whitespace() {
        // A speech begins a sentence of its own.
        first |= word.starts_with(['"', '“', '‘', '(']);
        let at = word.as_ptr() as usize - text.as_ptr() as usize;
        let bare = word.trim_matches(|c: char| !c.is_alphanumeric() && c != '@');
        let bare = bare.strip_suffix("'s").or_else(|| bare.strip_suffix("’s")).unwrap_or(bare);
        let handle = bare.starts_with('@') && world.object(&bare.to_lowercase()).is_none();
        let capital = bare.chars().next().is_some_and(char::is_uppercase) && bare.chars().count() > 1;
        let shouted = bare.chars().count() > 3 && bare.chars().all(|c| c.is_uppercase());
        let stranger = capital && (!first || shouted) && !is_known(&normal(bare)) && !COMMON.contains(&bare);
        // Two or three capitals are an abbreviation.
        let short = bare.chars().all(|c| !c.is_lowercase()) && !shouted;
        if handle || (stranger && !short) {
            found.push((at..at + word.len(), bare.to_owned()));
        }
        first = word.ends_with(['.', '!', '?', ':', '"', '”', '—']) || word.starts_with(['"', '“']);
    }
    for name in INTRODUCTIONS.iter().flat_map(|regex| regex.captures_iter(text)).filter_map(|found| found.get(1)) {
        let ordinary = COMMON.contains(&name.as_str()) || is_adverb(name.as_str());
        if !is_known(&normal(name.as_str())) && !ordinary {
            found.push((name.range(), name.as_str().to_owned()));
        }
    }
    found.sort_by_key(|(range, _)| range.start);
    found.dedup_by(|one, other| one.1 == other.1);
    found
}

/// Whether a word tells where, when or how. Such a word may begin a sentence, and is nobody.
fn is_adverb(word: &str) -> bool {
    const ADVERBS: [&str; 34] = [
        "outside",
        "inside",
        "overhead",
        "behind",
        "ahead",
        "below",
        "above",
        "beyond",
        "nearby",
        "downstairs",
        "upstairs",
        "still",
        "underfoot",
        "overnight",
        "offshore",
        "ashore",
        "aboard",
        "abroad",
        "inland",
        "beside",
        "between",
        "beneath",
        "opposite",
        "around",
        "across",
        "again",
        "soon",
        "later",
        "then",
        "there",
        "here",
        "once",
        "today",
        "tonight",
    ];
    let word = word.to_lowercase();
    let ends = ["ly", "ward", "wards", "where", "side", "while", "wise"];
    ADVERBS.contains(&word.as_str()) || ends.iter().any(|end| word.ends_with(end))
}

/// Capitalised without being anybody's name.
const COMMON: [&str; 20] = [
    "I'm",
    "I'll",
    "I've",
    "I'd",
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
    "Sunday",
    "North",
    "South",
    "East",
    "West",
    "God",
    "Sir",
    "Madam",
    "Mister",
    "DC",
];

#[cfg(test)]
mod tests;
