//! The part of a turn that a narrator sees before it proposes: no hidden file, no secret, no dice.

use serde::Serialize;

use crate::fetch::Snippet;
use crate::input::Intent;
use crate::turn::PreparedTurn;
use crate::world::Cartridge;
use crate::{ending, questions};

/// A turn as a narrator sees it.
#[derive(Clone, Debug, Serialize)]
pub struct Brief {
    pub title: String,
    /// What the players want kept out of the story, or off stage.
    pub lines_veils: String,
    /// Every other preference, as `KEY=VALUE`.
    pub preferences: Vec<String>,
    /// What always holds in this world.
    pub invariants: Vec<String>,
    /// For a question about the rules: the page that answers it.
    pub page: String,
    pub boot: String,
    /// The endings that the story has passed, by title.
    pub endings: Vec<String>,
    pub input: String,
    pub intent: Intent,
    pub refs: Vec<String>,
    pub snippets: Vec<Snippet>,
    pub indicators: Vec<String>,
}

impl Brief {
    pub fn new(turn: &PreparedTurn, input: &str, world: &Cartridge) -> Brief {
        Brief {
            title: world.title.clone(),
            lines_veils: turn.boot.lines_veils().to_owned(),
            preferences: turn.boot.preferences.iter().map(|(key, value)| format!("{key}={value}")).collect(),
            invariants: world.invariants.iter().map(|own| own.text.clone()).collect(),
            page: match turn.found.intent {
                Intent::Ooc => questions::find(&turn.found.body, world).text,
                _ => String::new(),
            },
            boot: turn.boot.summary(world),
            endings: ending::passed(&turn.boot.state, world),
            input: input.to_owned(),
            intent: turn.found.intent,
            refs: turn.refs.clone(),
            snippets: turn.fetched.snippets.clone(),
            indicators: world.indicators.iter().map(|own| format!("{} {}-{}", own.name, own.min, own.max)).collect(),
        }
    }
}
