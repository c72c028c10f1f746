//! Sentences that claim a deed of the kernel: having, losing, dying, ending, moods, light, levels. A narrator may repeat what this
//! turn has done; a sentence that claims anything else is taken out. `turn` uses it, after the move was played.

use std::cell::OnceCell;

use regex::Regex;

use crate::fold::Folded;
use crate::lint::ProseHit;
use crate::md::clip;
use crate::prose::{CleanedProse, sentences};
use crate::refs::normal;
use crate::state::State;
use crate::world::{Cartridge, Object, ObjectKind};

/// What the kernel has done in a turn, as the states before and after it tell.
pub struct TurnDeeds<'a> {
    pub world: &'a Cartridge,
    pub before: &'a State,
    pub after: &'a State,
    pub pc: &'a str,
    /// The patterns with the names of this world in them, made when they are first needed.
    patterns: OnceCell<Vec<DeedPattern>>,
}

/// A pattern with its name, and what bears it out.
struct DeedPattern {
    name: &'static str,
    regex: Regex,
    born_out: BornOut,
}

/// Whether the turn, or what stands after it, bears out what the sentence claims.
type BornOut = fn(&TurnDeeds<'_>, &Claim<'_>) -> bool;

/// A sentence in normal form, and the words of it that make the claim.
struct Claim<'a> {
    sentence: &'a str,
    /// Who or what it is about, and what is said of it, where the pattern names them.
    about: &'a str,
    said: &'a str,
}

const DETERMINED: &str =
    r"(?:a|an|the|some|two|three|four|five|six|seven|eight|nine|ten|many|\d+|his|her|their|your|its|all)";

/// Each has a name for its tests. `WHO` is the player's character, `NPC` a person of the world, `LEVEL` one of its indicators.
const DEEDS: [(&str, &str, BornOut); 8] = [
    (
        "having",
        r"(?i)\b(?:WHO)\s+(?:\w+ly\s+)?(?:picks?\s+up|pockets?|gains?|receives?|obtains?|acquires?|(?:is|are)\s+given)\s+DET\b|\b(?:is|are)\s+(?:now\s+)?(?:yours|in\s+your\s+(?:pack|hands?|pockets?|purse|bag))\b|\b(?:gives|hands|tosses|slips)\s+(?:WHO)\s+DET\b",
        |turn, claim| turn.names(claim, |item| turn.after.inventory.contains(item)),
    ),
    (
        "finding",
        r"(?i)\b(?:WHO|he|she|they)\s+(?:\w+ly\s+)?(?:now\s+)?(?:finds?|gets?|wins?|earns?|takes?|grabs?|has|have|holds?|owns?|carr(?:y|ies))\s+(?:now\s+)?DET\b",
        |turn, claim| {
            let named = turn.items(claim);
            let kept = named.iter().all(|item| turn.after.inventory.contains(&item.handle) || turn.in_sight(item));
            kept && !treasure(claim.sentence)
        },
    ),
    (
        "losing",
        r"(?i)\b(?:WHO)\s+(?:\w+ly\s+)?(?:loses?|spends?|pays?|forfeits?|gives?\s+(?:away|up)|hands?\s+over|uses?\s+up)\s+DET\b",
        |turn, claim| {
            let named = turn.items(claim);
            let gone = named.iter().all(|item| turn.lost(&item.handle));
            gone && !treasure(claim.sentence)
        },
    ),
    (
        "dying",
        r"(?i)\b(?P<about>WHO|NPC)\s+(?:\w+\s+)??(?:dies|drowns|perishes|(?:drops?|falls?|lies?)\s+dead|breathes?\s+(?:his|her|their|its)\s+last|(?:is|are)\s+(?:now\s+)?(?:dead|killed|slain|no\s+more))\b",
        |turn, claim| turn.person(claim.about).is_some_and(|npc| !turn.alive(npc)),
    ),
    (
        "ending",
        r"(?im)\bthe\s+(?:campaign|story|game|tale|adventure)\s+(?:is\s+(?:now\s+)?(?:closed|over|done|finished|at\s+an\s+end)|has\s+(?:now\s+)?ended|ends\b|comes\s+to\s+(?:an|its)\s+end)|\bgame\s+over\b|(?:^|[.!?]\s*)\W*the\s+end\s*(?:[.!]|$)|\byou\s+have\s+(?:won|lost)\s+the\s+(?:game|campaign)\b",
        |turn, _| !turn.after.memory.ended.is_empty(),
    ),
    (
        "mood",
        r"(?i)\b(?P<about>NPC)\s+(?:is|turns|becomes|grows|has\s+become|has\s+turned)\s+(?:now\s+|suddenly\s+|openly\s+)?(?P<said>hostile|friendly|your\s+(?:enemy|ally|friend)|an?\s+(?:enemy|ally|friend))\b",
        |turn, claim| {
            let foe = claim.said.contains("hostile") || claim.said.contains("enemy");
            let mood = if foe { "hostile" } else { "friendly" };
            turn.person(claim.about).is_some_and(|npc| turn.after.mood(npc) == mood)
        },
    ),
    (
        "light",
        r"(?i)\b(?:lamp|lantern|light|beacon|fire|torch|candle)s?\s+(?:is|are|has\s+been|have\s+been|burns?|shines?|glows?)\s+(?:now\s+)?(?:lit|alight|relit|rekindled|burning|ablaze|again|once\s+more)\b|\b(?:WHO)\s+(?:re)?(?:lights?|kindles?)\s+DET\b",
        |turn, claim| turn.stepped() || turn.done_about(claim.sentence),
    ),
    (
        "level",
        r"\b(?P<about>LEVEL)\s+(?P<said>rises|climbs|grows|increases|goes\s+up|falls|drops|sinks|decreases|goes\s+down|is\s+(?:up|down|higher|lower|gone|full|empty))(?:\s+(?:again|now|a\s+little|sharply|by\s+\w+|to\s+\w+))*\s*(?:[.,;!?]|$)",
        |turn, claim| {
            let of = |state: &State| state.indicators.get(claim.about).copied().unwrap_or(0);
            let up = ["rise", "climb", "grow", "increase", "up", "higher", "full"]
                .iter()
                .any(|own| claim.said.contains(own));
            if up { of(turn.after) > of(turn.before) } else { of(turn.after) < of(turn.before) }
        },
    ),
];

/// Money and arms that a sentence hands out although no world has them as things.
fn treasure(sentence: &str) -> bool {
    const WORDS: [&str; 18] = [
        "gold", "silver", "coin", "coins", "treasure", "gem", "gems", "jewel", "jewels", "sword", "bow", "armour",
        "armor", "shield", "potion", "scroll", "crown", "purse",
    ];
    sentence.split(' ').any(|word| WORDS.contains(&word))
}

/// Alternatives of a pattern; something that stands in no text where there are none.
fn either(words: impl Iterator<Item = String>) -> String {
    let mut words: Vec<String> = words.filter(|word| word.chars().count() > 1).collect();
    words.sort_by_key(|word| std::cmp::Reverse(word.len()));
    words.dedup();
    if words.is_empty() {
        "\u{1}".into()
    } else {
        words.iter().map(|word| regex::escape(word)).collect::<Vec<_>>().join("|")
    }
}

impl<'a> TurnDeeds<'a> {
    pub fn new(world: &'a Cartridge, before: &'a State, after: &'a State, pc: &'a str) -> TurnDeeds<'a> {
        TurnDeeds { world, before, after, pc, patterns: OnceCell::new() }
    }

    fn patterns(&self) -> &[DeedPattern] {
        self.patterns.get_or_init(|| {
            let pattern = |(name, pattern, born_out): (&'static str, &str, BornOut)| {
                Some(DeedPattern { name, regex: Regex::new(&self.pattern(pattern)).ok()?, born_out })
            };
            DEEDS.into_iter().filter_map(pattern).collect()
        })
    }

    /// The text without the sentences that claim what the kernel has not done.
    pub fn clean(&self, text: &str) -> CleanedProse {
        let mut out = CleanedProse { text: text.to_owned(), reports: Vec::new() };
        let hits = self.hits(text);
        out.cut(&hits);
        out
    }

    fn hits(&self, text: &str) -> Vec<ProseHit> {
        let folded = Folded::new(text);
        let mut hits = Vec::new();
        for DeedPattern { name, regex, born_out } in self.patterns() {
            for part in sentences(&folded.text) {
                let Some(found) = regex.captures(&folded.text[part.clone()]) else { continue };
                let group = |name: &str| found.name(name).map_or("", |own| own.as_str());
                let sentence = normal(&folded.text[part.clone()]);
                let claim = Claim { sentence: &sentence, about: group("about"), said: group("said") };
                if !born_out(self, &claim) {
                    let report = format!("\"{}\" has not happened ({name})", clip(found[0].trim(), 40));
                    hits.push(ProseHit { range: folded.back(&part), report });
                }
            }
        }
        hits
    }

    fn pattern(&self, pattern: &str) -> String {
        let pc = std::iter::once(self.pc.to_owned()).chain(self.pc.split(' ').next().map(str::to_owned));
        let who =
            either(pc.chain(["you".to_owned(), "your character".to_owned()]).filter(|own| !own.trim().is_empty()));
        let people = self.world.of(ObjectKind::Npc).flat_map(|npc| {
            std::iter::once(npc.name.clone()).chain(npc.name.split(' ').map(str::to_owned).collect::<Vec<_>>())
        });
        let people = people.filter(|word| word.chars().next().is_some_and(char::is_uppercase));
        let levels = self.world.indicators.iter().map(|own| own.name.clone());
        let filled = pattern.replace("WHO", &who).replace("NPC", &either(people));
        let filled = filled.replace("LEVEL", &either(levels)).replace("DET", DETERMINED);
        // The sentences are English: whole Unicode classes would only make the patterns large.
        filled.replace(r"\w", "[A-Za-z]").replace(r"\s", "[ \n]").replace(r"\d", "[0-9]")
    }

    /// The things of the world that the sentence names; one whose name is only a part of another's is not meant.
    fn items(&self, claim: &Claim<'_>) -> Vec<&Object> {
        let said = format!(" {} ", claim.sentence);
        let called = |item: &Object| {
            let names = std::iter::once(&item.name).chain(&item.aliases).map(|name| normal(name));
            let names = names.map(|name| name.strip_prefix("the ").map_or(name.clone(), str::to_owned));
            let met = names.filter(|name| !name.is_empty() && said.contains(&format!(" {name} ")));
            met.max_by_key(String::len)
        };
        let met: Vec<(&Object, String)> =
            self.world.of(ObjectKind::Item).filter_map(|item| Some((item, called(item)?))).collect();
        let part = |name: &String| {
            met.iter().any(|(_, other)| other != name && format!(" {other} ").contains(&format!(" {name} ")))
        };
        met.iter().filter(|(_, name)| !part(name)).map(|(item, _)| *item).collect()
    }

    /// Whether the sentence names a thing of which this holds, and none of which it does not.
    fn names(&self, claim: &Claim<'_>, holds: impl Fn(&String) -> bool) -> bool {
        let named = self.items(claim);
        !named.is_empty() && named.iter().all(|item| holds(&item.handle)) && !treasure(claim.sentence)
    }

    fn lost(&self, item: &String) -> bool {
        self.before.inventory.contains(item) && !self.after.inventory.contains(item)
    }

    /// Whether a thing lies here for all to see.
    fn in_sight(&self, item: &Object) -> bool {
        crate::hud::things(self.after, self.world).any(|own| own.handle == item.handle)
    }

    fn person(&self, name: &str) -> Option<&Object> {
        let name = normal(name);
        self.world.of(ObjectKind::Npc).find(|npc| {
            let own = normal(&npc.name);
            own == name || own.split(' ').any(|word| word == name)
        })
    }

    fn alive(&self, npc: &Object) -> bool {
        matches!(self.after.status(self.world, &npc.handle), "active" | "companion" | "hidden")
    }

    /// Whether a step that an author wrote was done in this turn.
    fn stepped(&self) -> bool {
        let deeds = |state: &State| state.memory.noted.iter().filter(|own| own.starts_with("deed ")).count();
        self.before.quests != self.after.quests || deeds(self.after) > deeds(self.before)
    }

    /// Whether a quest is done that has a word of the sentence in its name.
    fn done_about(&self, sentence: &str) -> bool {
        let done = self.after.quests.iter().filter(|(_, own)| own.status == "done");
        let names: Vec<String> = done.map(|(handle, _)| normal(self.world.name(handle))).collect();
        let words =
            |name: &String| name.split(' ').any(|word| word.len() > 3 && sentence.split(' ').any(|own| own == word));
        names.iter().any(words)
    }
}

#[cfg(test)]
mod tests;
