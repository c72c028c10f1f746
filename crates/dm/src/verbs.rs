//! What a sentence plainly means, without a model: the first verb that is known, and the words that are left of it.
//!
//! The list is closed on purpose: what it does not know is told to the player together with what it would know. A cartridge adds
//! its own words where they belong, in the `says` column of a stage or a deed.

use crate::refs::normal;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    Go,
    /// Back, or out of here.
    Leave,
    /// Away from here, wherever a way leads.
    Flee,
    Take,
    Drop,
    Give,
    Buy,
    Steal,
    Eat,
    Drink,
    Use,
    Look,
    Search,
    Talk,
    Interrogate,
    Read,
    Apologise,
    Fight,
    Cast,
    Wait,
    Rest,
    Inventory,
    Status,
    Map,
    /// What no rule of any world of ours allows, and why.
    Impossible(&'static str),
}

const WINGS: &str = "nobody here can fly";
const WALK: &str = "one place is reached from another on foot, and in no other way";
const SHAPE: &str = "everything here stays what it is";
const DEATH: &str = "nobody comes back by being wished back";

/// Phrases and what they mean; the longer ones first where one begins with another.
const PHRASES: &[(Verb, &[&str])] = &[
    (Verb::Take, &["pick up", "take", "grab", "get", "collect", "pocket", "gather", "lift", "pick", "拿"]),
    (Verb::Drop, &["put down", "set down", "throw away", "leave behind", "drop", "discard"]),
    (Verb::Give, &["hand over", "give", "hand", "offer", "return", "show", "deliver", "给"]),
    (Verb::Buy, &["buy", "purchase", "pay for", "pay", "order"]),
    (Verb::Steal, &["steal", "pilfer", "snatch", "filch"]),
    (Verb::Eat, &["eat", "dine", "taste", "have a meal", "meal", "吃"]),
    (Verb::Drink, &["drink", "sip", "fill the bottle", "refill"]),
    (Verb::Search, &["look around", "look for", "look about", "search", "rummage", "find", "scour"]),
    (Verb::Look, &["look at", "look", "examine", "inspect", "observe", "watch", "study", "view", "read"]),
    (
        Verb::Go,
        &[
            "go",
            "walk",
            "head",
            "travel",
            "march",
            "run",
            "climb to",
            "climb up to",
            "climb down to",
            "climb into",
            "enter",
            "visit",
            "return to",
            "move to",
            "follow",
            "leave for",
            "ride",
            "sail",
            "cross",
            "hike",
            "hurry",
            "approach",
            "descend",
            "ascend",
            "去",
        ],
    ),
    (
        Verb::Leave,
        &[
            "leave",
            "exit",
            "go back",
            "go out",
            "go outside",
            "go away",
            "turn back",
            "head back",
            "head out",
            "walk back",
            "walk out",
            "step out",
            "step outside",
            "get out",
        ],
    ),
    (Verb::Flee, &["flee", "run away", "run off", "run from", "escape", "get away", "retreat", "get out of here"]),
    (Verb::Interrogate, &["interrogate", "question hard", "grill"]),
    (
        Verb::Talk,
        &["talk", "ask", "speak", "say", "tell", "greet", "chat", "question", "persuade", "threaten", "call", "thank"],
    ),
    (Verb::Read, &["read the face", "size up", "sense motive", "gauge", "see through", "is lying", "insight"]),
    (Verb::Apologise, &["apologise", "apologize", "make peace", "beg pardon", "say sorry", "sorry"]),
    (Verb::Fight, &["attack", "fight", "hit", "strike", "punch", "kick", "stab", "kill", "shoot"]),
    (Verb::Cast, &["pray", "cast", "chant", "perform a rite", "bless"]),
    (Verb::Wait, &["wait", "linger", "stay", "pass the time", "sit", "等"]),
    (Verb::Rest, &["rest", "sleep", "take a breath", "nap", "camp", "lie down", "休息"]),
    (
        Verb::Inventory,
        &["inventory", "check my pack", "what am i carrying", "what do i carry", "what do i have", "check inventory"],
    ),
    (
        Verb::Status,
        &[
            "status",
            "take stock",
            "check myself",
            "quests",
            "quest log",
            "what should i do",
            "what do i do",
            "what now",
            "what next",
            "状态",
        ],
    ),
    (Verb::Map, &["map", "地图"]),
    (Verb::Use, &["use", "apply", "light", "open", "pour", "ring", "wear", "put on", "put", "pull", "turn on"]),
    (Verb::Impossible(WINGS), &["fly", "levitate", "soar", "hover"]),
    (Verb::Impossible(WALK), &["teleport", "vanish", "disappear", "blink", "time travel", "go back in time"]),
    (Verb::Impossible(SHAPE), &["become", "turn into", "transform", "conjure", "summon", "create", "wish"]),
    (Verb::Impossible(DEATH), &["resurrect", "revive", "raise the dead"]),
];

/// Words before the verb that change nothing about it.
const LEAD: &[&str] = &[
    "i",
    "we",
    "try",
    "to",
    "please",
    "carefully",
    "slowly",
    "quickly",
    "quietly",
    "then",
    "now",
    "just",
    "let",
    "me",
    "us",
    "want",
    "would",
    "like",
    "will",
    "and",
    "again",
    "my",
    "own",
    "go and",
    "attempt",
];

/// The verb that begins the sentence, and the words after it. Words that change nothing may stand before it.
pub fn verb(body: &str) -> Option<(Verb, String)> {
    let text = normal(body);
    let mut words: Vec<&str> = text.split(' ').collect();
    while words.len() > 1 && LEAD.contains(&words[0]) {
        words.remove(0);
    }
    let mut rest = words.join(" ");
    for lead in ["get up and ", "stand up and ", "turn and ", "go and ", "go over and "] {
        rest = rest.strip_prefix(lead).map_or(rest.clone(), str::to_owned);
    }
    // Alone they ask; with words after them they are acts of their own.
    match rest.as_str() {
        "help" => return Some((Verb::Status, String::new())),
        "return" => return Some((Verb::Leave, String::new())),
        _ => (),
    }
    let begins = |phrase: &str| {
        let after = rest.strip_prefix(phrase)?;
        // Scripts without spaces have no word ends to look for.
        (after.is_empty() || after.starts_with(' ') || !phrase.is_ascii()).then(|| after.trim().to_owned())
    };
    let mut best: Option<(usize, Verb, String)> = None;
    for (verb, phrases) in PHRASES {
        for phrase in *phrases {
            if let Some(after) = begins(phrase)
                && best.as_ref().is_none_or(|(length, ..)| phrase.len() > *length)
            {
                best = Some((phrase.len(), *verb, after));
            }
        }
    }
    // A judgement of somebody may stand anywhere: "whether Maud is lying".
    let read = ["is lying", "reads the face", "true intentions", "what she hides", "what he hides", "what they hide"];
    // "Is Maud lying?"
    let judged = ["is ", "are "].iter().any(|word| rest.starts_with(word))
        && [" lying", " honest", " telling the truth"].iter().any(|end| rest.ends_with(end));
    match best {
        Some((_, Verb::Look | Verb::Talk, _)) | None if judged || read.iter().any(|phrase| rest.contains(phrase)) => {
            Some((Verb::Read, rest))
        }
        best => best.map(|(_, verb, after)| (verb, after)),
    }
}

/// Whether the sentence says what is not to be done: `never go in`, `do not light it`.
pub fn denied(body: &str) -> bool {
    let text = normal(body);
    let lead = |word: &&str| LEAD.contains(word) || ["do", "does", "shall", "should", "must"].contains(word);
    let mut words = text.split(' ').skip_while(lead);
    let (first, second) = (words.next().unwrap_or_default(), words.next());
    let whole = ["never", "not", "dont", "wont", "cannot"].contains(&first);
    whole || second == Some("t") && ["don", "won", "can", "shouldn", "mustn"].contains(&first)
}

/// How the first order of an input is told from the second: an act by its verb, a look or a fight by its header, talk by what it is
/// about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leading {
    Verb,
    Header,
    Talk,
}

/// The first order of a sentence, and what is left where a second one follows it: `take the lantern and go to the inn`.
pub fn orders(body: &str, leading: Leading) -> (&str, Option<&str>) {
    // What is said word for word has orders of its own.
    if leading != Leading::Verb && body.contains(['"', '“']) {
        return (body, None);
    }
    for joint in [" and then ", ", then ", " then ", "; ", ". ", " and ", ", "] {
        for (at, _) in body.match_indices(joint) {
            let (first, rest) = (&body[..at], body[at + joint.len()..].trim().trim_end_matches('.'));
            if leading != Leading::Verb {
                if !meaning(first).is_empty()
                    && is_order(rest, joint)
                    && (leading == Leading::Header || asks(first, joint))
                {
                    return (first.trim(), Some(rest));
                }
                continue;
            }
            let one = match verb(first) {
                Some((Verb::Talk | Verb::Apologise | Verb::Interrogate, _)) | None => false,
                Some((Verb::Wait | Verb::Rest | Verb::Eat | Verb::Drink | Verb::Search | Verb::Look, _)) => true,
                // "Get up and look" is one order.
                Some((_, words)) => !meaning(&words).is_empty(),
            };
            if one && verb(rest).is_some() {
                return (first.trim(), Some(rest));
            }
        }
    }
    (body, None)
}

/// Whether words after a joint are an order of their own. A joint that also joins two nouns needs more than a verb.
fn is_order(rest: &str, joint: &str) -> bool {
    let joins_nouns = matches!(joint, " and " | ", ");
    match verb(rest) {
        Some((Verb::Wait | Verb::Rest | Verb::Eat | Verb::Inventory, _)) => true,
        Some((_, words)) => !joins_nouns || !meaning(&words).is_empty(),
        None => false,
    }
}

/// Whether the words before a joint ask about something, so that what follows is no part of the question: `Jun about the boats`. A joint
/// that begins a new sentence is enough.
fn asks(first: &str, joint: &str) -> bool {
    !matches!(joint, " and " | ", ") || normal(first).split(' ').any(|word| word == "about")
}

/// Whether the words seek something that may be hidden.
pub fn seeks(body: &str) -> bool {
    const SEEK: [&str; 16] = [
        "search", "seek", "look", "find", "dig", "probe", "feel", "rummage", "scour", "hunt", "grope", "explore",
        "pry", "examine", "uncover", "reach",
    ];
    meaning(body).iter().any(|word| SEEK.iter().any(|own| alike(word, own)))
}

/// Words that carry no meaning of their own, in what is left of a sentence.
const EMPTY: &[&str] = &[
    "the", "a", "an", "at", "in", "on", "of", "to", "for", "into", "my", "me", "i", "some", "this", "that", "with",
    "from", "and", "it", "its", "is", "are", "there", "here", "again", "very", "closely", "more", "about", "by", "up",
    "down", "out", "over", "under", "what", "who", "where", "how", "why", "between", "beneath", "behind", "beside",
    "near", "inside", "below", "above", "through", "s",
];

/// The words of a text that carry meaning, in their order.
pub fn meaning(text: &str) -> Vec<String> {
    normal(text).split(' ').filter(|word| !word.is_empty() && !EMPTY.contains(word)).map(str::to_owned).collect()
}

/// Whether two words are the same word in another form: `boat` and `boats`, `hear` and `heard`.
pub fn alike(one: &str, other: &str) -> bool {
    let stem = |word: &str| {
        let ends = ["ing", "ies", "es", "ed", "s", "y", "e"];
        let cut = ends.iter().find_map(|end| word.strip_suffix(end)).filter(|stem| stem.chars().count() >= 3);
        cut.unwrap_or(word).to_owned()
    };
    one == other || stem(one) == stem(other)
}

/// Whether a phrase of an author stands in the body: its words, in order, with nothing but empty words between them.
pub fn says(body: &str, phrase: &str) -> bool {
    let (body, phrase) = (meaning(body), meaning(phrase));
    if phrase.is_empty() || phrase.len() > body.len() {
        return false;
    }
    body.windows(phrase.len()).any(|part| part.iter().zip(&phrase).all(|(own, wanted)| alike(own, wanted)))
}

/// Greeting, thanks, weather, farewell: words that ask for nothing.
pub fn small_talk(body: &str, name: &[String]) -> bool {
    const SMALL: &[&str] = &[
        "hello",
        "hi",
        "hey",
        "greetings",
        "greet",
        "good",
        "morning",
        "evening",
        "day",
        "night",
        "afternoon",
        "you",
        "do",
        "doing",
        "well",
        "fine",
        "thank",
        "thanks",
        "bye",
        "goodbye",
        "farewell",
        "weather",
        "nice",
        "meet",
        "talk",
        "speak",
        "chat",
        "say",
        "your",
        "name",
        "am",
        "im",
        "ask",
        "tell",
        "friend",
        "sir",
        "madam",
        "today",
        "feel",
        "feeling",
        "been",
        "smile",
        "nod",
        "wave",
        "small",
        "pleased",
        "pleasure",
        "time",
        "pass",
    ];
    // A question about something is a question.
    if normal(body).split(' ').any(|word| word == "about") {
        return false;
    }
    let words = meaning(body);
    let own: Vec<&String> = words.iter().filter(|word| !name.iter().any(|part| part == *word)).collect();
    let asks =
        ["hello", "hi", "hey", "greet", "greetings", "morning", "evening", "afternoon", "doing", "thank", "thanks"];
    let asks =
        asks.iter().chain(&["bye", "goodbye", "farewell", "weather", "chat", "meet", "smile", "nod", "wave", "feel"]);
    let asks: Vec<&&str> = asks.chain(&["feeling", "day", "pleasure", "name", "you"]).collect();
    !own.is_empty()
        && own.iter().all(|word| SMALL.contains(&word.as_str()))
        && own.iter().any(|word| asks.iter().any(|one| **one == word.as_str()))
}

#[cfg(test)]
mod tests;
