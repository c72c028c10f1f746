//! A generated set of conversations with questions about them, in the shape of LongMemEval: facts that are told once, among small
//! talk, and asked for later in other words. `benches/proof/recall/sessions.md` says how it is made. The same seed gives the same set. Tests and the
//! benchmarks use it.

const FACTS: &str = include_str!("sample_sessions/facts.txt");
const FILLERS: &str = include_str!("sample_sessions/fillers.txt");

/// The persons of the facts, with their relation to the user.
const RELATIONS: [&str; 8] =
    ["cousin", "colleague", "neighbour", "aunt", "friend", "teacher", "brother-in-law", "landlady"];
const NAMES: [&str; 40] = [
    "Ruth", "Imran", "Solveig", "Matteo", "Agnes", "Tadeusz", "Yuki", "Bram", "Ingrid", "Kofi", "Leonie", "Pavel",
    "Noor", "Hamish", "Zuzana", "Diego", "Maren", "Anselm", "Priya", "Oskar", "Fiona", "Luan", "Greta", "Emeka",
    "Astrid", "Milo", "Wanda", "Rafael", "Sunniva", "Tomas", "Beatrix", "Jonas", "Hedda", "Alvaro", "Dagny", "Ilse",
    "Viktor", "Salma", "Nuno", "Elif",
];

/// One conversation.
pub struct Session {
    pub name: String,
    pub text: String,
}

/// A question, and the sessions that have its answer.
pub struct SampleQuestion {
    pub asked: String,
    /// The session that answers it.
    pub right: usize,
    /// The session with the value that the fact had before, if it changed.
    pub before: Option<usize>,
    /// The kind of its fact; one half of the kinds is for tuning, the other for scoring.
    pub kind: usize,
}

impl SampleQuestion {
    /// Whether weights may be chosen by it; such a question is not scored.
    pub fn is_for_tuning(&self) -> bool {
        self.kind.is_multiple_of(2)
    }
}

pub struct SessionSet {
    pub sessions: Vec<Session>,
    pub questions: Vec<SampleQuestion>,
}

#[derive(Default)]
struct FactKind {
    told: Vec<&'static str>,
    asked: Vec<&'static str>,
    answered: Vec<&'static str>,
    values: Vec<&'static str>,
}

struct Fillers {
    users: Vec<&'static str>,
    assistants: Vec<&'static str>,
    subjects: Vec<&'static str>,
}

/// SplitMix64: small, and the same everywhere.
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        (self.roll() % end.max(1) as u64) as usize
    }

    fn of<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len())]
    }

    fn shuffle<T>(&mut self, list: &mut [T]) {
        for at in (1..list.len()).rev() {
            list.swap(at, self.below(at + 1));
        }
    }
}

/// What a session tells beside small talk: pairs of what the user says and what the assistant answers.
type Exchange = (String, String);

/// Makes a set of `sessions` conversations with `questions` questions, at most one per kind of fact and person.
pub fn generate(seed: u64, sessions: usize, questions: usize) -> SessionSet {
    let (kinds, fillers, mut dice) = (kinds(), fillers(), Dice(seed));
    let mut pairs: Vec<(usize, usize)> =
        (0..kinds.len()).flat_map(|kind| (0..NAMES.len()).map(move |person| (kind, person))).collect();
    dice.shuffle(&mut pairs);
    let mut places: Vec<usize> = (0..sessions).collect();
    dice.shuffle(&mut places);
    let mut told: Vec<Vec<Exchange>> = (0..sessions).map(|_| Vec::new()).collect();
    let mut made = Vec::new();
    for (number, (kind, person)) in pairs.into_iter().enumerate() {
        // All facts but the first are distractors: another person, or another fact about the same.
        let Some(mut place) = places.pop() else { break };
        let mut before = None;
        let value = dice.of(&kinds[kind].values);
        told[place].push(exchange(&kinds[kind], person, value, &mut dice));
        if number < questions && number.is_multiple_of(4) {
            let Some(other) = places.pop() else { break };
            let (first, last) = (place.min(other), place.max(other));
            let others: Vec<&str> = kinds[kind].values.iter().copied().filter(|it| *it != value).collect();
            told[other].push(exchange(&kinds[kind], person, dice.of(&others), &mut dice));
            (before, place) = (Some(first), last);
        }
        if number < questions {
            let asked = filled(dice.of(&kinds[kind].asked), person, "");
            made.push(SampleQuestion { asked, right: place, before, kind });
        }
    }
    // The words of the questions without the facts: talk about the same things in general.
    for place in places.iter().take(sessions / 8) {
        let (kind, person) = (dice.below(kinds.len()), dice.below(NAMES.len()));
        let user = filled(dice.of(&fillers.users), person, dice.of(&fillers.subjects));
        told[*place].push((user, filled(dice.of(&kinds[kind].answered), person, "")));
    }
    let sessions = told.into_iter().enumerate();
    let sessions = sessions.map(|(number, told)| session(number, told, &fillers, &mut dice)).collect();
    SessionSet { sessions, questions: made }
}

/// A fact as the user tells it, and the answer.
fn exchange(kind: &FactKind, person: usize, value: &str, dice: &mut Dice) -> Exchange {
    let told = filled(dice.of(&kind.told), person, value);
    (told, filled(dice.of(&kind.answered), person, value))
}

fn session(number: usize, told: Vec<Exchange>, fillers: &Fillers, dice: &mut Dice) -> Session {
    let mut exchanges: Vec<Exchange> = (0..3 + dice.below(4))
        .map(|_| {
            let (subject, person) = (dice.of(&fillers.subjects), dice.below(NAMES.len()));
            (filled(dice.of(&fillers.users), person, subject), filled(dice.of(&fillers.assistants), person, subject))
        })
        .collect();
    for one in told {
        let at = dice.below(exchanges.len() + 1);
        exchanges.insert(at, one);
    }
    let lines = exchanges.into_iter().map(|(user, assistant)| format!("User: {user}\nAssistant: {assistant}\n"));
    Session { name: format!("session-{number:06}"), text: lines.collect() }
}

/// A template with a person, and a value or subject.
fn filled(template: &str, person: usize, value: &str) -> String {
    let (name, relation) = (NAMES[person], RELATIONS[person % RELATIONS.len()]);
    let text = template.replace("{p}", &format!("my {relation} {name}")).replace("{n}", name);
    let text = text.replace("{v}", value).replace("{t}", value);
    let mut chars = text.chars();
    chars.next().map_or(String::new(), |first| first.to_uppercase().chain(chars).collect())
}

fn kinds() -> Vec<FactKind> {
    let mut kinds: Vec<FactKind> = Vec::new();
    for (mark, rest) in marked(FACTS) {
        match (mark, kinds.last_mut()) {
            ("s", Some(kind)) => kind.told.push(rest),
            ("q", Some(kind)) => kind.asked.push(rest),
            ("a", Some(kind)) => kind.answered.push(rest),
            ("v", Some(kind)) => kind.values = rest.split(" | ").collect(),
            _ => kinds.push(FactKind::default()),
        }
    }
    kinds
}

fn fillers() -> Fillers {
    let of = |wanted: &str| marked(FILLERS).filter(|it| it.0 == wanted).map(|it| it.1).collect();
    let subjects = marked(FILLERS).filter(|it| it.0 == "t").flat_map(|it| it.1.split(" | ")).collect();
    Fillers { users: of("u"), assistants: of("a"), subjects }
}

/// The lines of a file as marks and what follows; `= name` begins a kind.
fn marked(text: &'static str) -> impl Iterator<Item = (&'static str, &'static str)> {
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(|line| line.split_once(": ").unwrap_or(("=", line)))
}
