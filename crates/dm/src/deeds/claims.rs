//! The kinds of claims that a sentence makes, each with its pattern and with what bears it out. Only `deeds` uses it.

use super::BornOut;
use crate::state::{FULL_HP, State};

pub(super) const DETERMINED: &str =
    r"(?:a|an|the|some|two|three|four|five|six|seven|eight|nine|ten|many|\d+|his|her|their|your|its|all)";

/// Anybody who might do something to the character.
pub(super) const FOLK: &str =
    "guards?|m[ae]n|wom[ae]n|soldiers?|sailors?|fisherm[ae]n|strangers?|figures?|thugs?|crowd|mob|bandits?";

pub(super) const NUMBER: &str =
    r"(?:a|an|the|another|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|\d+|many|some|several|few)";

/// Each has a name for its tests. `WHO` is the player's character, `NPC` a person of the world, `FOLK` anybody, `PLACE` the world or
/// a place of it, `LEVEL` one of its indicators.
pub(super) const DEEDS: [(&str, &str, BornOut); 18] = [
    (
        "having",
        r"(?i)\b(?:WHO)\s+(?:\w+ly\s+)?(?:picks?\s+up|pockets?|gains?|receives?|obtains?|acquires?|(?:is|are)\s+given)\s+DET\b|\b(?:is|are)\s+(?:now\s+)?(?:yours|in\s+your\s+(?:pack|hands?|pockets?|purse|bag))\b|\b(?:gives|hands|tosses|slips|passes|throws)\s+(?:WHO)\s+DET\b|\b(?:drops?|slips?|press(?:es)?|puts?|tucks?|push(?:es)?|slides?|places?|lays?|thrusts?|hangs?|lies|rests?|lands?|falls?|appears?|sits?|shoves?|toss(?:es)?|throws?|stuffs?|drips?)\b[^.!?]*\b(?:in|into|at|on|inside|from)\s+your\s+(?:own\s+)?(?:pack|bag|pockets?|purse|belt|satchel|sack|pouch|palms?|hands?|keeping|possession)\b|\byour\s+(?:purse|bag|pack|pockets?)\s+(?:is|are)\s+(?:now\s+)?(?:heavy|full|fat|richer|fuller)\b",
        |turn, claim| turn.names(claim, |item| turn.after.inventory.contains(item)) || gesture(claim.sentence),
    ),
    (
        "handing",
        r"(?i)\b(?:gives|hands|passes|pushes|slides)\s+(?:it|them|DET\s+\w+(?:\s+\w+)?)\s+(?:over|across|to\s+(?:WHO))\b",
        |turn, _| turn.after.inventory != turn.before.inventory,
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
        r"(?i)\b(?:WHO)\s+(?:(?:has|have|had)\s+)?(?:now\s+)?(?:\w+ly\s+)?(?:loses?|lost|spends?|spent|pays?|paid|forfeits?|forfeited|g[ai]ves?\s+(?:away|up)|given\s+(?:away|up)|hand(?:s|ed)?\s+over|use[sd]?\s+up)\s+DET\b|\byour\s+(?:\w+\s+){1,3}?(?:is|are|has\s+been|have\s+been)\s+(?:now\s+)?(?:gone|lost|stolen|missing|taken)\b",
        |turn, claim| {
            let named = turn.items(claim);
            let gone = named.iter().all(|item| turn.lost(&item.handle));
            gone && !treasure(claim.sentence)
        },
    ),
    (
        "dying",
        r"(?i)\b(?P<about>WHO|NPC)\s+(?:\w+\s+)??(?:dies|drowns|perishes|(?:drops?|falls?|lies?)\s+dead|breathes?\s+(?:his|her|their|its)\s+last|(?:is|are|was|were|has\s+been|have\s+been)\s+(?:now\s+)?(?:dead|killed|slain|murdered|hanged|drowned|stabbed|beheaded|no\s+more))\b|\b(?:everyone|everybody|all|the\s+(?:whole\s+)?(?:town|village|city))(?:\s+\w+){0,3}\s+(?:is|are|lies|lie)\s+dead\b",
        |turn, claim| turn.person(claim.about).is_some_and(|npc| !turn.alive(npc)),
    ),
    (
        "violence",
        r"(?i)\b(?:FOLK)\b[^.!?;]*?\b(?:attacks?|seizes?|grabs?|stabs?|strikes?|hits?|punch(?:es)?|kicks?|arrests?|binds?|chains?|throws?|drags?|beats?|shoots?|(?:lunges?|swings?|charges?|shoots?)\s+at|turns?\s+on|falls?\s+upon|assaults?|locks?|hurls?|knocks?|wounds?|robs?|overpowers?)\s+(?:WHO)\b|\b(?:FOLK)\b[^.!?;]*?\b(?:draws?|pulls?|raises?)\s+(?:a|an|the|his|her|their)\s+(?:\w+\s+)?(?:knife|blade|sword|dagger|club|weapon|axe|pistol)\b|\b(?:FOLK)\s+lunges?\b",
        |turn, _| turn.fought(),
    ),
    (
        "wound",
        r"(?i)\b(?:WHO)\s+(?:is|are)\s+(?:now\s+)?(?:badly\s+)?(?P<said>bleeding|wounded|injured|poisoned|maimed|crippled|blinded|unconscious|dying|cured|healed)\b|\byour\s+wounds?\b",
        |turn, claim| match claim.said {
            "cured" | "healed" => turn.after.hp > turn.before.hp,
            _ => turn.after.hp < FULL_HP,
        },
    ),
    (
        "standing",
        r"(?i)\b(?:WHO)\s+(?:is|are)\s+(?:now\s+)?(?:under\s+arrest|arrested|imprisoned|locked\s+up|in\s+(?:a\s+)?(?:cell|jail|prison|chains|irons)|free\s+of|banished|exiled|outlawed|pardoned|acquitted|forgiven)\b",
        |turn, _| turn.before.indicators != turn.after.indicators || turn.stepped(),
    ),
    (
        "joining",
        r"(?i)\b(?P<about>NPC)\s+(?:\w+ly\s+)?(?:joins|accompanies|follows|(?:comes|goes|travels)\s+with)\s+(?:WHO)\b|\b(?P<who>NPC)\s+is\s+(?:now\s+)?your\s+companion\b",
        |turn, claim| {
            let looks = ["eyes", "gaze", "look", "glance"];
            let only_looks = claim.sentence.split(' ').any(|word| looks.contains(&word));
            only_looks
                || turn.person(claim.about).is_some_and(|npc| turn.after.status(turn.world, &npc.handle) == "companion")
        },
    ),
    (
        "pledge",
        r"(?i)\b(?:NPC)\s+(?:\w+ly\s+)?(?:agrees|promises|swears|vows|consents|confesses|admits|reveals|betrays|lets\s+slip|tells\s+(?:you\s+)?(?:all|everything|the\s+truth|(?:his|her|the)\s+secret))\b",
        |turn, _| turn.learned(),
    ),
    (
        "ending",
        r"(?im)\b(?:campaign|story|game|tale|adventure|saga)\b[^.!?]{0,24}\b(?:is\s+(?:now\s+)?(?:closed|over|done|finished|at\s+an\s+end)|close|has\s+(?:now\s+)?ended|ends|concludes|comes\s+to\s+(?:an|its)\s+end)\b|\bgame\s+over\b|\b(?:end|close)\s+of\s+(?:the|this|your|our)\s+(?:campaign|story|game|tale|adventure|saga)\b|(?:^|[.!?]\s*)\W*the\s+end\s*(?:[.!]|$)|\byou\s+have\s+(?:won|lost)\s+the\s+(?:game|campaign)\b",
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
        r"(?i)\b(?:lamp|lantern|light|beacon|fire|torch|candle)s?\s+(?:is|are|has\s+been|have\s+been|burns?|shines?|glows?)\s+(?:now\s+)?(?:lit|alight|relit|rekindled|burning|ablaze|again|once\s+more)\b|\bthe\s+(?:great\s+|old\s+)?(?:lamp|beacon|tower|lighthouse|wick)(?:\s+of\s+(?:the\s+)?\w+)?\s+(?:burns?|shines?|glows?|kindles?|blazes?|flares?|(?:is|has\s+been)\s+(?:now\s+)?(?:lit|alight|relit|kindled|burning|ablaze))\b|\b(?:WHO)\s+(?:re)?(?:lights?|kindles?)\s+(?:DET|it|them)\b|\b(?:its|the)\s+beam\s+(?:sweeps|falls|passes)\b",
        |turn, claim| turn.stepped() || turn.done_about(claim.sentence) || turn.lights_done() || turn.lit_here(),
    ),
    (
        "time",
        r"(?i)(?:\b(?P<said>NUMBER)\s+)?\b(?P<about>(?:hour|day|week|month|year|night)s?)\s+(?:later|(?:have|has)\s+(?:passed|gone\s+by)|pass(?:es)?|goe?s?\s+by)\b",
        |turn, claim| span(claim.said, claim.about) <= turn.elapsed() + turn.elapsed() / 4,
    ),
    (
        "hour",
        r"(?i)\bit\s+is\s+(?:now\s+|already\s+)?(?P<about>midnight|noon|midday|dawn|sunrise|dusk|sunset|night|evening|morning|afternoon)\b|\b(?P<said>night|darkness|dusk|evening)\s+falls\b|\bon\s+the\s+(?:second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth)\s+day\b",
        |turn, claim| {
            let day = claim.sentence.split(" on the ").skip(1).any(|rest| rest.split(' ').nth(1) == Some("day"));
            !day && turn.is_hour(if claim.about.is_empty() { claim.said } else { claim.about })
        },
    ),
    (
        "waking",
        r"(?i)\b(?:WHO)\s+(?:\w+ly\s+)?(?:wakes?|awakes?|awakens?|(?:is|are)\s+(?:suddenly|back)\s+(?:in|on|at|elsewhere))\b",
        |turn, _| turn.before.location != turn.after.location || turn.elapsed() >= 60,
    ),
    (
        "ruin",
        r"(?i)\b(?:PLACE|town|village|city|world)\s+(?:sinks|drowns|collapses|vanishes|crumbles|burns\s+(?:down|to)|(?:is|lies)\s+(?:destroyed|in\s+ruins|under\s+water|drowned|burning|ablaze|no\s+more))\b|\b(?:eats|swallows|destroys|devours|burns\s+down)\s+(?:the\s+)?(?:PLACE|town|village|city|world)\b",
        |turn, _| !turn.after.memory.ended.is_empty(),
    ),
    (
        "level",
        r"\b(?P<about>LEVEL)\s+(?P<said>rises|climbs|grows|increases|goes\s+up|falls|drops|sinks|decreases|goes\s+down|is\s+(?:up|down|higher|lower|gone|full|empty))(?:\s+(?:again|now|a\s+little|sharply|by\s+\w+|to\s+\w+))*\s*(?:[.,;!?]|$)|(?i:\b(?:your|all)\s+(?P<level>LEVEL)s?\s+(?:is|are)\s+(?:now\s+)?(?:forgiven|paid|settled|cancelled|wiped|gone|cleared|doubled|nothing)\b)|(?i:\b(?:WHO)\s+(?:now\s+)?owes?\b)",
        |turn, claim| {
            if claim.about.is_empty() {
                return turn.before.indicators != turn.after.indicators;
            }
            let of = |state: &State| state.indicators.get(claim.about).copied().unwrap_or(0);
            let up = ["rise", "climb", "grow", "increase", "up", "higher", "full"]
                .iter()
                .any(|own| claim.said.contains(own));
            if up { of(turn.after) > of(turn.before) } else { of(turn.after) < of(turn.before) }
        },
    ),
];

/// Whether what somebody gives is no thing: a nod, a look, a word.
fn gesture(sentence: &str) -> bool {
    const GESTURES: [&str; 22] = [
        "nod", "look", "smile", "glance", "wave", "shrug", "moment", "warning", "word", "answer", "grin", "frown",
        "start", "push", "berth", "hand", "stare", "wink", "chill", "pause", "shiver", "thought",
    ];
    let words: Vec<&str> = sentence.split(' ').collect();
    let gives = ["gives", "hands", "tosses", "slips", "passes", "throws"];
    let at = words.windows(2).position(|pair| gives.contains(&pair[0]) && pair[1] == "you");
    at.is_some_and(|at| words.iter().skip(at + 2).take(4).any(|word| GESTURES.contains(word)))
}

/// The minutes of a span in words; one that is not counted is two of its units.
fn span(count: &str, unit: &str) -> u64 {
    const COUNTS: [&str; 12] =
        ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"];
    let count = count.to_lowercase();
    let number = COUNTS.iter().position(|own| *own == count).map(|at| at as u64 + 1);
    let number = number.or_else(|| count.parse().ok()).unwrap_or(match count.as_str() {
        "a" | "an" | "the" | "another" => 1,
        _ if unit.ends_with('s') => 2,
        _ => 1,
    });
    let minutes = match unit.to_lowercase().trim_end_matches('s') {
        "hour" => 60,
        "day" | "night" => 24 * 60,
        "week" => 7 * 24 * 60,
        "month" => 30 * 24 * 60,
        _ => 365 * 24 * 60,
    };
    number.min(10_000) * minutes
}

/// Money and arms that a sentence hands out although no world has them as things.
pub(super) fn treasure(sentence: &str) -> bool {
    const WORDS: [&str; 18] = [
        "gold", "silver", "coin", "coins", "treasure", "gem", "gems", "jewel", "jewels", "sword", "bow", "armour",
        "armor", "shield", "potion", "scroll", "crown", "purse",
    ];
    sentence.split(' ').any(|word| WORDS.contains(&word))
}
