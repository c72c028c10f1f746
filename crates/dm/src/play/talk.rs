//! Talking: common knowledge is free, a secret needs a check.

use super::Play;
use crate::check::Tier;
use crate::hud::people;
use crate::rule::{Effect, effects};
use crate::world::ObjectKind;
use acheron_base::Result;

pub(super) fn run(play: &mut Play<'_>) -> Result<()> {
    let world = play.world;
    let present: Vec<_> = people(&play.state, world).map(|npc| npc.handle.clone()).collect();
    let spoken = play.refs.iter().filter_map(|own| world.object(own)).find(|object| object.kind == ObjectKind::Npc);
    let npc = match spoken {
        Some(npc) if present.contains(&npc.handle) => npc,
        Some(npc) => {
            let instead = "ask somebody who is here, or go where they are";
            play.impossible(format!("{} is not here", npc.name), instead);
            return Ok(());
        }
        None => match present.as_slice() {
            [] => {
                play.impossible("there is nobody here to ask".into(), "go where people are");
                return Ok(());
            }
            [only] => world.object(only).unwrap_or(&world.objects[0]), // cannot: `only` was taken from the world
            _ => {
                play.effect(&Effect::Minutes(5))?;
                play.row("ask around", "unclear");
                play.out.no_progress = Some("several are here and none feels spoken to; name one".into());
                return Ok(());
            }
        },
    };
    play.out.action = format!("{} is drawn into talk.", npc.name);
    play.effect(&Effect::Minutes(10))?;
    let told = play.state.told.get(&npc.handle).copied().unwrap_or(0);
    let secrets: Vec<&String> = npc.easy_secrets.iter().chain(&npc.hard_secrets).collect();
    let Some(secret) = secrets.get(told as usize) else {
        play.row(format!("talk to {}", npc.name), "nothing new");
        play.out.no_progress = Some(format!("{} has no more to tell", npc.name));
        return Ok(());
    };
    let approach = play.rules.social.approach(&play.found.body);
    let hard = told as usize >= npc.easy_secrets.len();
    let (low, high) = approach.map_or((10, 20), |approach| (approach.low as i32, approach.high as i32));
    let dc = (if hard { high.min(16) } else { low } - npc.number("trust").unwrap_or(0) as i32).clamp(low, high);
    let dc = play.found.risk.map_or(dc, |risk| risk.clamp(dc));
    let name = approach.map_or("persuasion", |approach| approach.name.as_str());
    let tier = play.check_at(&format!("{name} with {}", npc.name), "cha", dc);
    if tier == Tier::Failure {
        let risk = effects(approach.map_or("", |approach| approach.risk.as_str())).unwrap_or_default();
        let lawful: Vec<Effect> = risk.into_iter().filter(|effect| play.state.lawful(effect, world).is_ok()).collect();
        play.pay(&lawful)?;
        play.out.no_progress = Some(format!("{} says nothing that was not known", npc.name));
        return Ok(());
    }
    let count = if tier == Tier::Great && !hard { 2 } else { 1 };
    for secret in std::iter::once(secret).chain(secrets.get(told as usize + 1)).take(count) {
        play.out.found.push(format!("{}: {secret}", npc.name));
    }
    let known = (told + count as i64).min(secrets.len() as i64);
    play.state.told.insert(npc.handle.clone(), known);
    Ok(())
}
