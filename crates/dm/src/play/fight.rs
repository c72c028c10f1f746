//! Fighting: one exchange of blows per turn. A character who falls is unconscious, not dead; the story goes on at a price.

use super::Play;
use crate::hud::people;
use crate::mechanics::combat::{BlowContext, Fighter, first, strike};
use crate::rule::Effect;
use crate::state::FULL_HP;
use crate::world::{Object, ObjectKind};
use acheron_base::Result;

pub(super) fn run(play: &mut Play<'_>) -> Result<()> {
    let world = play.world;
    let spoken = play.refs.iter().filter_map(|own| world.object(own)).find(|object| object.kind == ObjectKind::Npc);
    let here: Vec<String> = people(&play.state, world).map(|npc| npc.handle.clone()).collect();
    let Some(npc) = spoken.filter(|npc| here.contains(&npc.handle)) else {
        let why = spoken.map_or("no foe was named".to_owned(), |npc| format!("{} is not here", npc.name));
        play.impossible(why, "name somebody who is here by handle or code");
        return Ok(());
    };
    let mut foe = foe(play, npc);
    let mut own = Fighter {
        name: if play.pc.name.is_empty() { "the stranger".into() } else { play.pc.name.clone() },
        hp: play.state.hp,
        full: FULL_HP,
        str: play.pc.modifier("str"),
        dex: play.pc.modifier("dex"),
        weapon: play.pc.weapon.clone(),
        armour: play.pc.armour.clone(),
    };
    let ground = world.object(&play.state.location).map_or("", |place| place.field("ground")).to_owned();
    play.out.action = format!("Steel, fists and breath: {} and {} close with each other.", own.name, foe.name);
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
        let result = if damage > 0 {
            format!("hit for {damage} ({})", check.formula)
        } else {
            format!("missed ({})", check.formula)
        };
        play.row(check.what.clone(), result);
        play.out.checks.push(check);
    }
    play.state.foes.insert(npc.handle.clone(), foe.hp);
    play.effect(&Effect::Hp(own.hp - play.state.hp))?;
    play.effect(&Effect::Minutes(5))?;
    if world.indicator("Heat").is_some() && here.len() > 1 {
        play.effect(&Effect::Level { name: "Heat".into(), by: 1, reason: "a fight before witnesses".into() })?;
    }
    if foe.hp == 0 {
        play.effect(&Effect::Status(npc.handle.clone(), "inactive".into()))?;
        play.out.consequences.push(format!("{} is out of the fight", npc.name));
    }
    if own.hp == 0 {
        fall(play)?;
    }
    Ok(())
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

/// Falling is a cost and a new situation: hours lost, and one wakes where the story began.
fn fall(play: &mut Play<'_>) -> Result<()> {
    let start = play.world.start.clone();
    play.out.consequences.push("darkness; hours later, a cot and the smell of broth".into());
    play.out.cost = vec!["time 480".into()];
    if play.world.object(&start).is_some() {
        play.effect(&Effect::Move(start))?;
    }
    play.effect(&Effect::Minutes(480))?;
    play.effect(&Effect::Hp(FULL_HP / 2))
}
