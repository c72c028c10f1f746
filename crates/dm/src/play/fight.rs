//! Fighting: one exchange of blows per turn. Violence is remembered; somebody who falls is unconscious for a while, not dead.

use super::unclear::cannot;
use super::{Play, weapon};
use crate::hud::people;
use crate::mechanics::combat::{BlowContext, Fighter, first, strike};
use crate::rule::Effect;
use crate::state::FULL_HP;
use crate::world::{Object, ObjectKind};
use acheron_base::Result;

/// How long somebody stays unconscious, in minutes.
const DOWN: u64 = 8 * 60;

pub(super) fn run(play: &mut Play<'_>) -> Result<()> {
    let world = play.world;
    let spoken = play.refs.iter().filter_map(|own| world.object(own)).find(|object| object.kind == ObjectKind::Npc);
    let here: Vec<String> = people(&play.state, world).map(|npc| npc.handle.clone()).collect();
    let Some(npc) = spoken.filter(|npc| here.contains(&npc.handle)) else {
        let down = |npc: &Object| play.state.memory.down.contains_key(&npc.handle);
        let why = match spoken {
            Some(npc) if down(npc) => format!("{} is unconscious", npc.name),
            Some(npc) => play.not_here(npc, "is not here to be fought"),
            None if play.rest().is_empty() => "no foe was named".to_owned(),
            None => "there is nobody of that name here to be fought".to_owned(),
        };
        cannot(play, why);
        return Ok(());
    };
    let chosen = match weapon::chosen(play) {
        Ok(chosen) => chosen,
        Err(why) => {
            cannot(play, why);
            return Ok(());
        }
    };
    let peaceful = play.state.mood(npc) != "hostile";
    let (mut foe, mut own) = (foe(play, npc), own(play, &chosen.name));
    let ground = ground(play);
    play.out.action = format!("{} You close with {}.", chosen.said, foe.name).trim().to_owned();
    let mine = first(&own, &foe, &mut play.dice);
    for turn in [mine, !mine] {
        if own.hp == 0 || foe.hp == 0 {
            break;
        }
        // The narrator judges the player's own blow; the ground is the same for both.
        let judged =
            BlowContext { ground: &ground, situation: play.judged.situational, advantage: play.judged.advantage };
        let plain = BlowContext { ground: &ground, ..BlowContext::default() };
        let (by, at, context) = if turn { (&own, &mut foe, judged) } else { (&foe, &mut own, plain) };
        let (check, damage) = strike(by, at, &play.rules.combat, context, &mut play.dice);
        tell(play, check, damage);
    }
    play.state.foes.insert(npc.handle.clone(), foe.hp);
    play.effect(&Effect::Hp(own.hp - play.state.hp))?;
    play.effect(&Effect::Minutes(5))?;
    if here.len() > 1 {
        play.witnessed("a fight before witnesses")?;
    }
    if peaceful {
        play.effect(&Effect::Mood(npc.handle.clone(), "hostile".into()))?;
        play.remember(&npc.handle, -3);
        for other in here.iter().filter(|other| **other != npc.handle) {
            play.remember(other, -1);
        }
    }
    if foe.hp == 0 {
        play.effect(&Effect::Status(npc.handle.clone(), "inactive".into()))?;
        play.state.memory.down.insert(npc.handle.clone(), play.state.time.minutes() + DOWN);
        play.event(format!("{} is out of the fight", npc.name));
    }
    Ok(())
}

fn tell(play: &mut Play<'_>, check: crate::check::Check, damage: i64) {
    let result = if damage > 0 { format!("hit for {damage}") } else { "missed".into() };
    play.row(check.what.clone(), format!("{result} ({})", check.formula));
    play.out.checks.push(check);
}

fn ground(play: &Play<'_>) -> String {
    play.world.object(&play.state.location).map_or("", |place| place.field("ground")).to_owned()
}

/// The player's character as a fighter.
fn own(play: &Play<'_>, weapon: &str) -> Fighter {
    Fighter {
        name: play.pc_name(),
        hp: play.state.hp,
        full: FULL_HP,
        str: play.pc.modifier("str"),
        dex: play.pc.modifier("dex"),
        weapon: weapon.to_owned(),
        armour: play.pc.armour.clone(),
    }
}

fn foe(play: &Play<'_>, npc: &Object) -> Fighter {
    let full = npc.number("hp").unwrap_or(6).clamp(1, 200);
    Fighter {
        name: npc.name.clone(),
        hp: play.state.foes.get(&npc.handle).copied().unwrap_or(full),
        full,
        str: npc.number("str").unwrap_or(0).clamp(-5, 10),
        dex: npc.number("dex").unwrap_or(0).clamp(-5, 10),
        weapon: npc.field("weapon").to_owned(),
        armour: npc.field("armour").to_owned(),
    }
}

/// One blow of somebody hostile, out of turn.
pub(super) fn blow(play: &mut Play<'_>, npc: &Object) -> Result<()> {
    let (by, mut at, ground) = (foe(play, npc), own(play, &weapon::own(play)), ground(play));
    let (check, damage) = strike(
        &by,
        &mut at,
        &play.rules.combat,
        BlowContext { ground: &ground, ..BlowContext::default() },
        &mut play.dice,
    );
    tell(play, check, damage);
    play.effect(&Effect::Hp(-damage))
}

/// Somebody unconscious whose time has come wakes with half of their strength.
pub(super) fn wake(play: &mut Play<'_>) {
    let now = play.state.time.minutes();
    let due = play.state.memory.down.iter().filter(|(_, at)| **at <= now).map(|(who, _)| who.clone());
    for who in due.collect::<Vec<_>>() {
        play.state.memory.down.remove(&who);
        if play.state.statuses.get(&who).is_some_and(|status| status == "inactive") {
            play.state.statuses.remove(&who);
        }
        let full = play.world.object(&who).and_then(|npc| npc.number("hp")).unwrap_or(6);
        play.state.foes.insert(who, (full / 2).max(1));
    }
}
