//! Managing: status, inventory, map, rest, meals, and a holding where there is one.

use super::unclear::{cannot, not_understood};
use super::{Play, pass, things, weapon};
use crate::grammar::{capital, the, the_first};
use crate::mechanics::governance::{self, Holding};
use crate::menu;
use crate::refs::normal;
use crate::rule::Effect;
use crate::state::FULL_HP;
use crate::verbs::Verb;
use crate::world::ObjectKind;
use acheron_base::Result;

pub(super) fn run(play: &mut Play<'_>) -> Result<()> {
    let body = play.found.body.to_lowercase();
    let says = |word: &str| body.contains(word);
    let item =
        play.refs.iter().filter_map(|own| play.world.object(own)).find(|own| own.kind == ObjectKind::Item).cloned();
    match play.verb() {
        Some(Verb::Status) => status(play),
        Some(Verb::Map) => map(play),
        Some(Verb::Inventory) => inventory(play),
        Some(Verb::Eat) => things::eat(play, item.as_ref())?,
        Some(Verb::Rest) => pass::rest(play, &body)?,
        Some(Verb::Wait) => pass::wait(play, &play.rest())?,
        Some(verb @ (Verb::Drink | Verb::Drop | Verb::Buy | Verb::Give | Verb::Use)) => {
            things::run(play, verb, item.as_ref())?;
        }
        _ if says("month") => month(play)?,
        _ if says("harvest") => harvest(play)?,
        _ if says("train") => train(play)?,
        _ if says("status") => status(play),
        _ if says("map") => map(play),
        _ => not_understood(
            play,
            "there is status, quests, inventory, map, rest, wait, eat and drink to manage; month, harvest and train with a holding",
        ),
    }
    Ok(())
}

/// What is carried, with what it weighs.
pub(super) fn inventory(play: &mut Play<'_>) {
    let world = play.world;
    let items: Vec<_> = play.state.inventory.iter().filter_map(|item| world.object(item)).cloned().collect();
    let page = weapon::of_page(play).map(str::to_owned);
    let empty = items.is_empty() && page.is_none();
    play.out.action = if empty { "Nothing is carried.".into() } else { "The pack is opened.".into() };
    if let Some(own) = page {
        play.row(the_first(&own), "at your belt");
    }
    for item in items {
        play.row(capital(&the(&item.name)), item.summary.clone());
    }
    let (penalty, runs) = play.load();
    if penalty != 0 {
        play.row(
            "load",
            format!("{} lb: {penalty} on every check{}", play.pounds(), if runs { "" } else { ", no running" }),
        );
    }
    play.out.said = true;
}

pub(super) fn status(play: &mut Play<'_>) {
    play.out.action = "A moment to take stock.".into();
    let page = weapon::of_page(play);
    let carried: Vec<&str> =
        page.into_iter().chain(play.state.inventory.iter().map(|item| play.world.name(item))).collect();
    let carried = if carried.is_empty() { "nothing".to_owned() } else { carried.join(", ") };
    let next = menu::hooks(&play.state, play.world);
    let quests = play.state.quests.iter().map(|(handle, quest)| {
        let next = next.iter().find_map(|hook| hook.strip_prefix(handle.as_str())?.strip_prefix(": "));
        let next = next.map_or(String::new(), |next| format!("; next: {}", in_words(play, next)));
        format!("{}: {}{next}", play.world.name(handle), quest.status)
    });
    let quests: Vec<String> = quests.collect();
    let (hp, fatigue) = (play.state.hp, play.state.fatigue);
    play.row("body", format!("HP {hp} of {FULL_HP}, fatigue {fatigue}"));
    for (name, by) in play.burdens() {
        play.row(name, format!("{by:+} on every check"));
    }
    play.row("carried", carried);
    for line in quests {
        play.row("quest", line);
    }
    for (part, value) in play.state.memory.holding.clone() {
        play.row(format!("holding: {part}"), value.to_string());
    }
    play.out.said = true;
}

/// A text with the names of what it calls by handles.
fn in_words(play: &Play<'_>, text: &str) -> String {
    let word = |word: &str| if word.starts_with('@') { the(play.world.name(word)) } else { word.to_owned() };
    text.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

pub(super) fn map(play: &mut Play<'_>) {
    if let Some(off) = play.world.off("map_system") {
        play.out.action = "There is no map.".into();
        play.row("map", "impossible");
        play.out.no_progress = Some(off);
        return;
    }
    play.out.action = "The map is unrolled.".into();
    let shown = play.world.map.render(&play.state.seen, &play.state.location, |at| play.world.name(at).to_owned());
    for line in shown.lines().filter(|line| !line.trim().is_empty()) {
        play.row("map", line.replace('|', "/"));
    }
    play.out.said = true;
}

/// The holding: the one that play has given, else the one of the panel.
fn holding(play: &Play<'_>) -> Holding {
    let own = |part: &str| play.state.memory.holding.get(part).copied().unwrap_or(0);
    if own("lands") == 0 {
        return governance::holding(play.governance);
    }
    Holding {
        lands: own("lands"),
        followers: own("followers"),
        soldiers: own("soldiers"),
        loyalty: own("loyalty"),
        food: own("food"),
    }
}

/// The holding as it is now; `None`, and the reason is told, where there is none.
fn held(play: &mut Play<'_>, what: &str) -> Option<Holding> {
    if let Some(off) = play.world.off("governance") {
        play.out.action = "There are no books to open.".into();
        play.row(what, "impossible");
        play.out.no_progress = Some(off);
        return None;
    }
    let holding = holding(play);
    if holding.lands == 0 {
        play.out.action = "There are no books to open.".into();
        play.row(what, "no holding");
        play.out.no_progress = Some("there is no land to govern".into());
        return None;
    }
    Some(holding)
}

fn settle(play: &mut Play<'_>, after: &Holding, told: &[String]) {
    for line in told {
        play.row("settlement", line.clone());
    }
    let parts = [("lands", after.lands), ("followers", after.followers), ("soldiers", after.soldiers)];
    for (part, value) in parts.into_iter().chain([("food", after.food), ("loyalty", after.loyalty)]) {
        play.state.memory.holding.insert(part.to_owned(), value);
    }
    play.settled = Some(governance::panel(after, &play.rules.governance, told));
}

/// One month of a holding; its panel is written with the turn.
fn month(play: &mut Play<'_>) -> Result<()> {
    let Some(holding) = held(play, "month") else { return Ok(()) };
    let (after, told) = governance::settle(&holding);
    play.out.action = "The books are opened and the month is settled.".into();
    settle(play, &after, &told);
    play.effect(&Effect::Minutes(30 * 24 * 60))
}

/// The harvest of all lands, once in a month, by the soil of the place (`soil: poor|good|rich`).
fn harvest(play: &mut Play<'_>) -> Result<()> {
    let Some(mut after) = held(play, "harvest") else { return Ok(()) };
    let month = play.state.time.minutes() / (30 * 24 * 60);
    if !play.state.memory.note(&format!("harvest {month}")) {
        play.out.action = "The fields are bare.".into();
        play.row("harvest", "brought in already");
        play.out.no_progress = Some("the fields give once in a month".into());
        return Ok(());
    }
    let soil = play.world.object(&play.state.location).map_or("", |place| place.field("soil"));
    let yielded = after.lands * governance::harvest(40, soil);
    after.food += yielded;
    play.out.action = "The harvest is brought in.".into();
    settle(play, &after, &[format!("harvest: food +{yielded}")]);
    play.effect(&Effect::Minutes(24 * 60))
}

/// Trains a tenth of the followers as soldiers; a larger holding trains them faster.
fn train(play: &mut Play<'_>) -> Result<()> {
    let Some(mut after) = held(play, "train") else { return Ok(()) };
    let most = after.followers / 10;
    let wanted = normal(&play.found.body).split(' ').find_map(|word| word.parse::<i64>().ok());
    let count = wanted.unwrap_or(most);
    if most > 0 && !(1..=most).contains(&count) {
        cannot(play, format!("one in ten of the followers can be spared, at most {most}"));
        return Ok(());
    }
    if most == 0 {
        play.out.action = "Nobody can be spared.".into();
        play.row("train", "too few followers");
        play.out.no_progress = Some("ten followers make one soldier".into());
        return Ok(());
    }
    let days = governance::training(30, play.rules.governance.tier(&after));
    after.followers -= count;
    after.soldiers += count;
    play.out.action = match count {
        1 => format!("For {days} days one of the followers learns the spear."),
        _ => format!("For {days} days {count} of the followers learn the spear."),
    };
    settle(play, &after, &[format!("soldiers +{count}, followers -{count}")]);
    play.effect(&Effect::Minutes(days.max(1) as u64 * 24 * 60))
}
