//! Drinking: from what is carried, else from the water of the place. Only `things` uses it.

use super::Play;
use super::things::{absent, carried};
use super::unclear::cannot;
use crate::grammar::{the, the_first};
use crate::rule::{Effect, effects};
use crate::water::{self, Water};
use crate::world::{Object, ObjectKind};
use acheron_base::Result;

pub(super) fn drink(play: &mut Play<'_>, item: Option<&Object>) -> Result<()> {
    let world = play.world;
    let drinkable = |item: &&Object| item.field("drink") == "yes" && carried(play, item);
    if let Some(item) = item.filter(|item| !drinkable(item)) {
        absent(play, item, if carried(play, item) { "is nothing to drink" } else { "is not carried" });
        return Ok(());
    }
    let place = world.object(&play.state.location);
    let name = place.map_or_else(|| "this place".to_owned(), |place| the(&place.name));
    let here = place.map_or(Water::None, |place| water::at(&play.state, place));
    let meant = water::meant(&play.other_words());
    let flask = item.or_else(|| world.of(ObjectKind::Item).find(drinkable).filter(|_| here != Water::Good && meant));
    match (flask, here) {
        (Some(flask), _) => {
            play.out.action = format!("{} is emptied.", the_first(&flask.name));
            play.effects(&effects(flask.field("use")).unwrap_or_default())?;
            if carried(play, flask) {
                play.effect(&Effect::Lose(flask.handle.clone()))?;
            }
        }
        (None, Water::Good) if meant => play.out.action = format!("You drink at {name}."),
        (None, Water::Foul) => {
            cannot(play, format!("the water at {name} is not fit to drink"));
            return Ok(());
        }
        (None, Water::Good) => {
            cannot(play, "that is nothing to drink");
            return Ok(());
        }
        (None, Water::None) => {
            let own = world.of(ObjectKind::Item).find(drinkable).map(|flask| the(&flask.name));
            let why = own.map_or_else(|| "none is carried".to_owned(), |flask| format!("{flask} is what you carry"));
            cannot(play, format!("there is no water here to drink; {why}"));
            return Ok(());
        }
    }
    play.row("drink", "drunk");
    play.effect(&Effect::Minutes(5))?;
    play.state.memory.drank = play.state.time.minutes();
    Ok(())
}
