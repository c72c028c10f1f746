//! The weapon of a fight: what is named and carried, else the weapon at hand, else a fist. Only `fight` and `manage` use it.

use super::Play;
use crate::grammar::{the, the_first};
use crate::known::known;
use crate::refs::normal;
use crate::verbs::meaning;
use crate::world::{Object, ObjectKind};

/// A weapon of the rules, and what is said of it where it is none of the player's own.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ChosenWeapon {
    pub name: String,
    pub said: String,
}

/// Words that say how somebody fights, and not with what.
const MANNER: [&str; 20] = [
    "might",
    "care",
    "force",
    "strength",
    "fury",
    "everything",
    "all",
    "anger",
    "rage",
    "caution",
    "speed",
    "skill",
    "full",
    "hard",
    "courage",
    "luck",
    "hatred",
    "back",
    "him",
    "her",
];

/// The weapon that the move means, or why there is none.
pub(super) fn chosen(play: &Play<'_>) -> Result<ChosenWeapon, String> {
    let plain = |name: &str| Ok(ChosenWeapon { name: name.to_owned(), said: String::new() });
    let things = play.refs.iter().filter_map(|own| play.world.object(own)).filter(|own| own.kind == ObjectKind::Item);
    if let Some(thing) = things.into_iter().next() {
        return with_thing(play, thing);
    }
    let words = tool(play);
    let says = |word: &str| words.iter().any(|own| own == word);
    match words.as_slice() {
        _ if ["fist", "fists", "hand", "hands", "bare"].into_iter().any(says) => plain("fist"),
        _ if ["rock", "rocks", "stone", "stones", "pebble"].into_iter().any(says) => {
            Ok(ChosenWeapon { name: "rock".into(), said: "You pick up a rock.".into() })
        }
        [] if normal(&play.found.body).starts_with("shoot") => match own(play) {
            name if ["shortbow", "crossbow"].contains(&name.as_str()) => plain(&name),
            _ => Err("nothing to shoot with is carried".into()),
        },
        [] => plain(&own(play)),
        [.., last] if *last == own(play) => plain(last),
        words => Err(format!("no {} is carried", words.join(" "))),
    }
}

/// A thing of the world as a weapon: its own kind (`weapon`), else no better than a fist.
fn with_thing(play: &Play<'_>, thing: &Object) -> Result<ChosenWeapon, String> {
    if !play.state.inventory.contains(&thing.handle) {
        return Err(match known(&play.state, play.world, thing) {
            true => format!("{} is not carried", the(&thing.name)),
            false => "nothing of that name is carried".to_owned(),
        });
    }
    Ok(match thing.field("weapon") {
        "" => ChosenWeapon {
            name: "fist".into(),
            said: format!("{} is no weapon: it does what a fist does.", the_first(&thing.name)),
        },
        name => ChosenWeapon { name: name.to_owned(), said: String::new() },
    })
}

/// What the words fight with: what stands after `with`, or between `throw` and `at`.
fn tool(play: &Play<'_>) -> Vec<String> {
    let body = format!(" {} ", normal(&play.found.body));
    let after = [" with ", " using "].iter().find_map(|word| body.split_once(word)).map(|(_, after)| after);
    let thrown = ["throw ", "hurl ", "fling ", "toss ", "shoot ", "fire ", "swing "].iter().find_map(|verb| {
        let rest = body.trim_start().strip_prefix(verb)?;
        rest.split_once(" at ").map(|(thing, _)| thing)
    });
    let names = play.name_words();
    let own = |word: &String| !names.contains(word) && !MANNER.contains(&word.as_str());
    meaning(after.or(thrown).unwrap_or_default()).into_iter().filter(own).collect()
}

/// The weapon at hand: that of the character's page, else the first carried thing that is one, else a fist.
pub(super) fn own(play: &Play<'_>) -> String {
    let carried = play.state.inventory.iter().filter_map(|item| play.world.object(item));
    let found = of_page(play).or_else(|| carried.map(|item| item.field("weapon")).find(|weapon| !weapon.is_empty()));
    found.unwrap_or("fist").to_owned()
}

/// The weapon of the character's page, where no thing of the world stands for it.
pub(super) fn of_page<'a>(play: &Play<'a>) -> Option<&'a str> {
    let weapon = play.pc.weapon.as_str();
    let thing = play.world.of(ObjectKind::Item).any(|item| item.field("weapon") == weapon);
    Some(weapon).filter(|weapon| !thing && !weapon.is_empty())
}
