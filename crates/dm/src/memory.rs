//! What a campaign remembers beside its levels and quests: where things were put, how people feel, what was told, how it ended.
//! A part of [`crate::state::State`]; only `state` reads and writes it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Memory {
    /// Where things lie and people stand that play has moved, by handle.
    pub placed: BTreeMap<String, String>,
    /// The dispositions that play has changed, by handle.
    pub moods: BTreeMap<String, String>,
    /// By how much trust has changed, by handle.
    pub trust: BTreeMap<String, i64>,
    /// What the player has been told once: handles, facts (`@quay#1`), topics (`@jun:boats`), deeds.
    pub noted: Vec<String>,
    /// How many scenes were set in each place.
    pub scenes: BTreeMap<String, u64>,
    /// The minute of the world when somebody unconscious wakes, by handle.
    pub down: BTreeMap<String, u64>,
    /// The hostile people here who have given their warning.
    pub warned: Vec<String>,
    /// Minutes of the world when water was last drunk.
    pub drank: u64,
    /// The holding of the player, where the cartridge has given one: lands, followers, soldiers, food, loyalty.
    pub holding: BTreeMap<String, i64>,
    /// The ending that closed the campaign; empty while it is open.
    pub ended: String,
    /// Every ending that was reached.
    pub endings: Vec<String>,
    /// The people whom a narrator has brought in, by the name of their page, and where each was brought in.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub brought: BTreeMap<String, String>,
    /// What narrators have changed on one day: the `day`, and by how much each level, clock, time and hit points.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub narrated: BTreeMap<String, i64>,
}

impl Memory {
    /// Reads its keys of the panel; a key of the wrong shape counts as absent.
    pub fn read(panel: &Value) -> Memory {
        let mut own = Map::new();
        for key in KEYS {
            let part: Map<String, Value> = [(key.to_owned(), panel[key].clone())].into_iter().collect();
            if serde_json::from_value::<Memory>(Value::Object(part)).is_ok() {
                own.insert(key.to_owned(), panel[key].clone());
            }
        }
        serde_json::from_value(Value::Object(own)).unwrap_or_default()
    }

    /// Puts its keys into the panel.
    pub fn write(&self, panel: &mut Map<String, Value>) {
        if let Value::Object(own) = json!(self) {
            panel.extend(own);
        }
    }

    /// Notes something that is told. True for the first time.
    pub fn note(&mut self, what: &str) -> bool {
        let fresh = !self.noted.iter().any(|own| own == what);
        if fresh {
            self.noted.push(what.to_owned());
        }
        fresh
    }
}

const KEYS: [&str; 13] = [
    "placed", "moods", "trust", "noted", "scenes", "down", "warned", "drank", "holding", "ended", "endings", "brought",
    "narrated",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panel_of_another_hand_loses_only_the_key_that_is_wrong() {
        let own = Memory::read(&json!({"noted": ["@lamp"], "moods": 7, "drank": 40}));
        assert_eq!((own.noted, own.moods.len(), own.drank), (vec!["@lamp".to_owned()], 0, 40));
        let mut panel = Map::new();
        let brought = [("zelda".to_owned(), "@quay".to_owned())].into();
        let narrated = [("day".to_owned(), 1)].into();
        Memory { brought, narrated, ..Memory::default() }.write(&mut panel);
        assert_eq!(panel.keys().count(), KEYS.len(), "every key that is written is read");
    }
}
