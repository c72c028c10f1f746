//! Managing: status, map, rest, meals, a month of governance.

use super::Play;
use crate::mechanics::{governance, survival};
use crate::rule::Effect;
use crate::state::FULL_HP;
use crate::world::ObjectKind;
use acheron_base::Result;

pub(super) fn run(play: &mut Play<'_>) -> Result<()> {
    let body = play.found.body.to_lowercase();
    let says = |word: &str| body.contains(word);
    match () {
        () if says("status") || says("状态") => status(play),
        () if says("map") || says("地图") => map(play),
        () if says("eat") || says("meal") || says("吃") => eat(play)?,
        () if says("month") => month(play)?,
        () => match survival::named(&body) {
            Some(kind) => rest(play, kind)?,
            None => {
                play.effect(&Effect::Minutes(10))?;
                play.row(play.found.action_summary.clone(), "nothing to settle");
                play.out.no_progress = Some("there is status, map, rest, eat and month to manage".into());
            }
        },
    }
    Ok(())
}

fn status(play: &mut Play<'_>) {
    play.out.action = "A moment to take stock.".into();
    let carried: Vec<&str> = play.state.inventory.iter().map(|item| play.world.name(item)).collect();
    let carried = if carried.is_empty() { "nothing".to_owned() } else { carried.join(", ") };
    let quests =
        play.state.quests.iter().map(|(handle, quest)| format!("{}: {}", play.world.name(handle), quest.status));
    let quests: Vec<String> = quests.collect();
    let (hp, fatigue) = (play.state.hp, play.state.fatigue);
    play.row("body", format!("HP {hp} of {FULL_HP}, fatigue {fatigue}"));
    play.row("carried", carried);
    for line in quests {
        play.row("quest", line);
    }
}

fn map(play: &mut Play<'_>) {
    play.out.action = "The map is unrolled.".into();
    let shown = play.world.map.render(&play.state.seen, &play.state.location, |at| play.world.name(at).to_owned());
    for line in shown.lines().filter(|line| !line.trim().is_empty()) {
        play.row("map", line.replace('|', "/"));
    }
}

fn eat(play: &mut Play<'_>) -> Result<()> {
    let food = play
        .world
        .of(ObjectKind::Item)
        .find(|item| item.field("food") == "yes" && play.state.inventory.contains(&item.handle));
    let Some(food) = food else {
        play.effect(&Effect::Minutes(5))?;
        play.row("eat", "nothing to eat");
        play.out.no_progress = Some("no food is carried".into());
        return Ok(());
    };
    play.out.action = format!("{} is eaten to the last crumb.", food.name);
    play.row("eat", food.name.clone());
    play.effect(&Effect::Lose(food.handle.clone()))?;
    play.effect(&Effect::Minutes(20))?;
    play.state.ate = play.state.time.minutes();
    Ok(())
}

fn rest(play: &mut Play<'_>, kind: survival::Rest) -> Result<()> {
    let place = play.world.object(&play.state.location);
    let sheltered = place.is_some_and(|place| place.field("shelter") == "yes");
    let thrown = if kind == survival::Rest::Short { i64::from(play.dice.throw(6, "short rest")) } else { 0 };
    let rested = survival::rest(kind, FULL_HP, thrown, sheltered);
    play.out.action = if sheltered {
        "A roof, a door, and nobody at it.".into()
    } else {
        "The ground is hard and the sky is close.".into()
    };
    let name = match kind {
        survival::Rest::Short => "short rest",
        survival::Rest::Long => "long rest",
        survival::Rest::Complete => "complete rest",
    };
    play.row(name, format!("HP +{}, fatigue {:+}", rested.hp, rested.fatigue));
    play.effect(&Effect::Minutes(rested.minutes))?;
    play.effect(&Effect::Hp(rested.hp))?;
    play.state.fatigue = (play.state.fatigue + rested.fatigue).clamp(0, 5);
    if sheltered && kind != survival::Rest::Short {
        play.state.ate = play.state.time.minutes();
    }
    Ok(())
}

/// One month of a holding; its panel is written with the turn.
fn month(play: &mut Play<'_>) -> Result<()> {
    let holding = governance::holding(play.governance);
    if holding.lands == 0 {
        play.row("month", "no holding");
        play.out.no_progress = Some("there is no land to govern".into());
        return Ok(());
    }
    let (after, told) = governance::settle(&holding);
    play.out.action = "The books are opened and the month is settled.".into();
    for line in &told {
        play.row("settlement", line.clone());
    }
    play.settled = Some(governance::panel(&after, &play.rules.governance, &told));
    play.effect(&Effect::Minutes(30 * 24 * 60))
}
