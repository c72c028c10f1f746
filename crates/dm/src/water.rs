//! Water: where one can drink, as a place's page says it (`water`). The plays of drinking and resting and the check of a
//! cartridge use it.

use crate::rule::Condition;
use crate::state::State;
use crate::world::Object;

/// The water of a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Water {
    None,
    /// There is some, and nobody could drink it.
    Foul,
    Good,
}

/// The condition under which a place has water; `None` where it is a plain word, or is not said.
pub fn rule(place: &Object) -> Result<Option<Condition>, String> {
    match place.field("water") {
        "" | "-" | "yes" | "no" | "foul" => Ok(None),
        text => match text.strip_prefix("when ") {
            Some(when) => Condition::parse(when).map(Some).map_err(|fault| format!("water: {}", fault.message)),
            None => Err(format!("water `{text}` must be yes, no, foul, or `when` and a condition")),
        },
    }
}

/// The water of a place as things stand.
pub fn at(state: &State, place: &Object) -> Water {
    match (place.field("water"), rule(place)) {
        ("yes", _) => Water::Good,
        ("foul", _) => Water::Foul,
        (_, Ok(Some(when))) if state.holds(&when) => Water::Good,
        _ => Water::None,
    }
}

/// Words that one drinks, or drinks from.
const DRINKS: [&str; 26] = [
    "water", "some", "deep", "deeply", "well", "bucket", "cup", "spring", "stream", "pool", "lake", "river", "jug",
    "kettle", "hand", "hands", "bowl", "mug", "basin", "pump", "fountain", "ladle", "fill", "gulp", "cold", "fresh",
];

/// Whether these words, beside a name, mean the water of a place.
pub fn meant(words: &[String]) -> bool {
    words.iter().all(|word| DRINKS.contains(&word.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_holds_water_is_drunk_from() {
        let words = |text: &str| crate::verbs::meaning(text);
        assert!(meant(&words("")) && meant(&words("from the bucket")) && meant(&words("some cold water")));
        assert!(!meant(&words("the sand")) && !meant(&words("from the frog")));
    }
}
