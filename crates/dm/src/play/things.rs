//! Things: taking, dropping, giving, buying, stealing, eating, drinking, using.

use super::drink::drink;
use super::unclear::cannot;
use super::{Play, weapon};
use crate::check::Tier;
use crate::grammar::{sentence, the, the_first};
use crate::hud::{people, things};
use crate::known::known;
use crate::rule::{Effect, effects};
use crate::verbs::{Verb, says};
use crate::world::{Object, ObjectKind};
use acheron_base::Result;

/// Plays a verb that is about things. `item` is the one that was named, if one was.
pub(super) fn run(play: &mut Play<'_>, verb: Verb, item: Option<&Object>) -> Result<()> {
    match (verb, item) {
        (Verb::Drink, item) => drink(play, item),
        (Verb::Eat, item) => eat(play, item),
        (Verb::Buy, None) => match for_sale(play) {
            Some(item) => buy(play, &item),
            None => {
                cannot(play, "nothing of that name can be had here");
                Ok(())
            }
        },
        (Verb::Drop | Verb::Give, None) if weapon::of_page(play).is_some_and(|own| says(&play.found.body, own)) => {
            let own = weapon::of_page(play).unwrap_or_default();
            cannot(play, format!("{} stays at your belt: it is no thing of this story", the(own)));
            Ok(())
        }
        (_, None) => {
            let what = match verb {
                Verb::Take | Verb::Buy | Verb::Steal => "nothing of that name can be had here",
                _ => "nothing of that name is carried",
            };
            cannot(play, what);
            Ok(())
        }
        (Verb::Take | Verb::Steal | Verb::Buy, Some(item)) if carried(play, item) => {
            play.row(format!("{} {}", spoken(verb), the(&item.name)), "carried already");
            play.out.action = format!("{} is in hand already.", the_first(&item.name));
            play.out.no_progress = Some(format!("{} is in your pack: it is not had twice", the(&item.name)));
            Ok(())
        }
        (Verb::Take, Some(item)) => take(play, item),
        (Verb::Buy, Some(item)) => buy(play, item),
        (Verb::Steal, Some(item)) => steal(play, item),
        (_, Some(item)) if !carried(play, item) => {
            absent(play, item, "is not carried");
            Ok(())
        }
        (Verb::Drop, Some(item)) => drop_it(play, item),
        (Verb::Give, Some(item)) => give(play, item),
        (_, Some(item)) => wield(play, item),
    }
}

/// Plays a verb on each of several things, as `take the notice and the lantern` means it.
pub(super) fn several(play: &mut Play<'_>, verb: Verb, items: &[&Object]) -> Result<()> {
    let mut told = Vec::new();
    for item in items {
        run(play, verb, Some(item))?;
        told.push(std::mem::take(&mut play.out.action));
    }
    play.out.action = told.join(" ");
    Ok(())
}

/// Answers that a thing cannot be had. One that the player has not seen is not named.
pub(super) fn absent(play: &mut Play<'_>, item: &Object, why: &str) {
    let why = match known(&play.state, play.world, item) {
        true => format!("{} {why}", the(&item.name)),
        false => "nothing of that name is here or carried".to_owned(),
    };
    cannot(play, why);
}

fn spoken(verb: Verb) -> &'static str {
    match verb {
        Verb::Buy => "buy",
        Verb::Steal => "steal",
        _ => "take",
    }
}

pub(super) fn carried(play: &Play<'_>, item: &Object) -> bool {
    play.state.inventory.contains(&item.handle)
}

fn lies_here(play: &Play<'_>, item: &Object) -> bool {
    things(&play.state, play.world).any(|own| own.handle == item.handle)
}

/// The person here who sells the thing.
fn seller<'a>(play: &'a Play<'_>, item: &Object) -> Option<&'a Object> {
    let handle = item.field("seller");
    people(&play.state, play.world).find(|npc| npc.handle == handle)
}

/// The one thing that is for sale here, for a buyer who names none: `order food`.
fn for_sale(play: &Play<'_>) -> Option<Object> {
    let words = play.other_words();
    let meant = |item: &&Object| {
        words.iter().all(|word| match word.as_str() {
            "something" | "anything" => true,
            "food" | "meal" | "eat" => item.field("food") == "yes",
            "drink" | "water" => item.field("drink") == "yes",
            _ => false,
        })
    };
    let mut sold = things(&play.state, play.world).filter(|item| seller(play, item).is_some()).filter(meant);
    sold.next().filter(|_| sold.next().is_none()).cloned()
}

/// Takes what is named, or uses it if it is carried.
pub(super) fn handle(play: &mut Play<'_>, item: &Object) -> Result<()> {
    if carried(play, item) { wield(play, item) } else { take(play, item) }
}

fn take(play: &mut Play<'_>, item: &Object) -> Result<()> {
    if !lies_here(play, item) {
        absent(play, item, "is not at hand here");
        return Ok(());
    }
    // A price is only of use to somebody who is there to take it.
    if let Some(seller) = seller(play, item) {
        let why = format!("{} is {}'s to sell: buy it, or steal it at a risk", the(&item.name), seller.name);
        cannot(play, why);
        return Ok(());
    }
    taken(play, item, "take", "taken")
}

fn taken(play: &mut Play<'_>, item: &Object, verb: &str, result: &str) -> Result<()> {
    play.out.action = sentence(&format!("You now have {}: {}", the(&item.name), item.summary));
    play.state.memory.note(&item.handle);
    play.effect(&Effect::Take(item.handle.clone()))?;
    play.effect(&Effect::Minutes(5))?;
    play.row(format!("{verb} {}", the(&item.name)), result);
    Ok(())
}

fn buy(play: &mut Play<'_>, item: &Object) -> Result<()> {
    if !lies_here(play, item) {
        absent(play, item, "is not for sale here");
        return Ok(());
    }
    let price = effects(item.field("price")).unwrap_or_default();
    let Some(seller) = seller(play, item).filter(|_| !price.is_empty()).map(|npc| npc.name.clone()) else {
        cannot(play, format!("nobody here sells {}", the(&item.name)));
        return Ok(());
    };
    if let Some(why) = play.state.unpayable(&price, play.world) {
        cannot(play, why);
        return Ok(());
    }
    play.effects(&price)?;
    taken(play, item, "buy", &format!("bought of {seller}"))
}

/// Theft: the quick hand against the eyes of whoever sells the thing.
fn steal(play: &mut Play<'_>, item: &Object) -> Result<()> {
    if !lies_here(play, item) || seller(play, item).is_none() {
        return take(play, item);
    }
    let owner = seller(play, item).map(|npc| npc.handle.clone()).unwrap_or_default();
    let tier = play.check(&format!("steal {}", the(&item.name)), "dex");
    if tier == Tier::Failure {
        play.out.action = format!("{} sees the hand before it closes.", the_first(play.world.name(&owner)));
        play.remember(&owner, -2);
        play.pay(&[])?;
        play.witnessed("a theft that was seen")?;
        play.out.no_progress = Some("the thing stays where it is".into());
        return Ok(());
    }
    taken(play, item, "steal", "taken unseen")
}

fn drop_it(play: &mut Play<'_>, item: &Object) -> Result<()> {
    let here = play.state.location.clone();
    play.out.action = format!("You put {} down.", the(&item.name));
    play.effect(&Effect::Put(item.handle.clone(), here))?;
    play.row(format!("drop {}", the(&item.name)), "dropped");
    Ok(())
}

/// Gives a thing to somebody who wants it. Somebody who does not want it hands it back.
fn give(play: &mut Play<'_>, item: &Object) -> Result<()> {
    let world = play.world;
    let named = play.refs.iter().filter_map(|own| world.object(own)).find(|object| object.kind == ObjectKind::Npc);
    let here: Vec<&Object> = people(&play.state, world).collect();
    let to = match (named, here.as_slice()) {
        (Some(npc), here) if here.iter().any(|own| own.handle == npc.handle) => npc.clone(),
        (Some(npc), _) => {
            let why = play.not_here(npc, "is not here");
            cannot(play, why);
            return Ok(());
        }
        (None, [only]) => (*only).clone(),
        (None, _) => {
            cannot(play, "it must be given to somebody who is here");
            return Ok(());
        }
    };
    let what = format!("give {} to {}", the(&item.name), to.name);
    if !to.field("wants").split([',', ' ']).any(|own| own == item.handle) {
        play.effect(&Effect::Minutes(1))?;
        play.out.action = format!("{} looks at {} and hands it back.", to.name, the(&item.name));
        play.row(what, "not wanted");
        play.out.no_progress = Some(format!("{} has no use for it", to.name));
        return Ok(());
    }
    play.out.action = format!("{} takes {} and keeps it.", to.name, the(&item.name));
    play.effect(&Effect::Lose(item.handle.clone()))?;
    play.remember(&to.handle, 1);
    play.effects(&effects(to.field("thanks")).unwrap_or_default())?;
    play.effect(&Effect::Minutes(5))?;
    play.row(what, "taken gladly");
    Ok(())
}

/// Uses what is carried, as its `use` column says.
fn wield(play: &mut Play<'_>, item: &Object) -> Result<()> {
    if item.field("food") == "yes" {
        return eat(play, Some(item));
    }
    let uses = effects(item.field("use")).unwrap_or_default();
    if uses.is_empty() {
        play.out.action = format!("You turn {} over in both hands.", the(&item.name));
        play.row(format!("use {}", the(&item.name)), "nothing");
        play.out.no_progress = Some(format!("{} does nothing here", the(&item.name)));
        return Ok(());
    }
    play.out.action = format!("{} is put to use.", the_first(&item.name));
    play.row(format!("use {}", the(&item.name)), "used");
    play.effects(&uses)?;
    play.effect(&Effect::Minutes(5))
}

/// Eats the named food, else the first that is carried. What is eaten is gone.
pub(super) fn eat(play: &mut Play<'_>, item: Option<&Object>) -> Result<()> {
    let world = play.world;
    let edible = |item: &&Object| item.field("food") == "yes" && carried(play, item);
    let food = match item {
        Some(item) if !edible(&item) => {
            absent(play, item, if carried(play, item) { "is nothing to eat" } else { "is not carried" });
            return Ok(());
        }
        Some(item) => item,
        None => match world.of(ObjectKind::Item).find(edible) {
            Some(food) => food,
            None => {
                cannot(play, "no food is carried");
                return Ok(());
            }
        },
    };
    play.out.action = format!("{} is eaten to the last crumb.", the_first(&food.name));
    play.row(format!("eat {}", the(&food.name)), "eaten");
    play.effects(&effects(food.field("use")).unwrap_or_default())?;
    if carried(play, food) {
        play.effect(&Effect::Lose(food.handle.clone()))?;
    }
    play.effect(&Effect::Minutes(20))?;
    play.state.ate = play.state.time.minutes();
    Ok(())
}
