//! People beyond plain talk: seeing through them, breaking their silence, making peace; and what they remember.

use super::Play;
use super::unclear::cannot;
use crate::check::Tier;
use crate::grammar::sentence;
use crate::hud::people;
use crate::known::known;
use crate::mechanics::social::{self, Insight};
use crate::rule::Effect;
use crate::world::{Object, ObjectKind};
use acheron_base::Result;

/// Reads a person: what they hold back, not what it is.
pub(super) fn insight(play: &mut Play<'_>, npc: &Object) -> Result<()> {
    if npc.kind != ObjectKind::Npc || !people(&play.state, play.world).any(|own| own.handle == npc.handle) {
        cannot(play, "only somebody who is here can be read");
        return Ok(());
    }
    let dc = social::insight_dc(npc.number("insight").unwrap_or(0), npc.number("level").unwrap_or(0)) as i32;
    play.check_at(&format!("read {}", npc.name), "int", dc);
    play.effect(&Effect::Minutes(5))?;
    let gap = play.out.checks.last().map_or(-1, |check| i64::from(check.total - dc));
    let left = npc.easy_secrets.len() + npc.hard_secrets.len();
    let left = left.saturating_sub(play.state.told.get(&npc.handle).copied().unwrap_or(0).max(0) as usize);
    let mood = Some(play.state.mood(npc)).filter(|mood| !mood.is_empty()).unwrap_or("neutral").to_owned();
    let wants = npc.field("goals").to_owned();
    play.out.action = match social::insight(gap) {
        Insight::Believes => format!("{}'s face says what {}'s mouth says.", npc.name, npc.name),
        Insight::None => format!("{} is {mood}, and shows no more than that.", npc.name),
        Insight::Suspicious if left > 0 => format!("{} is {mood}, and holds something back.", npc.name),
        Insight::SeesThrough if left > 0 && !wants.is_empty() => {
            format!("{} is {mood}, holds back {left} of what there is to tell, and wants one thing: {wants}.", npc.name)
        }
        Insight::SeesThrough if left > 0 => {
            format!("{} is {mood}, and holds back {left} of what there is to tell.", npc.name)
        }
        Insight::Suspicious | Insight::SeesThrough => format!("{} is {mood}, and has nothing left to hide.", npc.name),
    };
    if gap < 5 {
        play.out.no_progress = Some(format!("nothing is learned of {}", npc.name));
    }
    Ok(())
}

/// Breaks a person's silence, if their will can be broken. It is remembered, however it goes.
pub(super) fn interrogate(play: &mut Play<'_>, npc: &Object) -> Result<()> {
    let will = Some(npc.field("will")).filter(|will| !will.is_empty()).unwrap_or("firm");
    let Some(dc) = social::interrogation(will) else {
        play.effect(&Effect::Minutes(30))?;
        play.sour(npc)?;
        play.out.action = format!("{} says nothing, and would say nothing under any question.", npc.name);
        play.row(format!("interrogate {}", npc.name), "silence");
        play.out.no_progress = Some("no question breaks this silence".into());
        return Ok(());
    };
    let tier = play.check_at(&format!("interrogate {}", npc.name), "will", dc as i32);
    play.effect(&Effect::Minutes(30))?;
    play.remember(&npc.handle, -2);
    play.sour(npc)?;
    play.witnessed("a person put to the question")?;
    let told = play.state.told.get(&npc.handle).copied().unwrap_or(0).max(0) as usize;
    let secrets: Vec<&String> = npc.easy_secrets.iter().chain(&npc.hard_secrets).collect();
    match secrets.get(told) {
        Some(_) if tier == Tier::Failure => {
            play.out.action = format!("{} looks at the wall until it is over.", npc.name);
            play.pay(&[])?;
            play.out.no_progress = Some(format!("{} does not break", npc.name));
        }
        Some(secret) => {
            play.out.action = format!("{} breaks, and speaks.", npc.name);
            play.out.found.push(sentence(&format!("{}: {secret}", npc.name)));
            play.state.told.insert(npc.handle.clone(), told as i64 + 1);
        }
        None => {
            play.out.action = format!("{} has nothing left that a question could break out.", npc.name);
            play.out.no_progress = Some(format!("{} has no more to tell", npc.name));
        }
    }
    Ok(())
}

/// Makes peace with somebody who is hostile or wary.
pub(super) fn apologise(play: &mut Play<'_>, npc: &Object) -> Result<()> {
    let mood = play.state.mood(npc).to_owned();
    play.effect(&Effect::Minutes(10))?;
    if !matches!(mood.as_str(), "hostile" | "wary") {
        play.out.action = format!("{} waves it away: there is nothing to forgive.", npc.name);
        play.row(format!("make peace with {}", npc.name), "nothing to mend");
        return Ok(());
    }
    let dc = (14 - play.state.trust(npc)).clamp(8, 18) as i32;
    if play.check_at(&format!("make peace with {}", npc.name), "cha", dc) == Tier::Failure {
        play.out.action = format!("{} hears it to the end and does not answer.", npc.name);
        play.pay(&[])?;
        play.out.no_progress = Some("it is not forgiven yet".into());
        return Ok(());
    }
    play.out.action = format!("{} takes a long breath, and lets it be.", npc.name);
    let to = if mood == "hostile" { "wary" } else { "neutral" };
    play.effect(&Effect::Mood(npc.handle.clone(), to.into()))?;
    play.remember(&npc.handle, 1);
    Ok(())
}

impl Play<'_> {
    /// A person remembers: their trust changes.
    pub(super) fn remember(&mut self, who: &str, by: i64) {
        let trust = self.state.memory.trust.entry(who.to_owned()).or_insert(0);
        *trust = trust.saturating_add(by).clamp(-5, 5);
    }

    /// Somebody who was threatened is friendly no more.
    pub(super) fn sour(&mut self, npc: &Object) -> Result<()> {
        match self.state.mood(npc) {
            "wary" | "hostile" => Ok(()),
            _ => self.effect(&Effect::Mood(npc.handle.clone(), "wary".into())),
        }
    }

    /// The sentence about somebody who is elsewhere. One who was never met is not named.
    pub(super) fn not_here(&self, npc: &Object, why: &str) -> String {
        match known(&self.state, self.world, npc) {
            true => format!("{} {why}", npc.name),
            false => "nobody of that name is here".to_owned(),
        }
    }

    /// A deed before others raises the heat, where the cartridge counts it.
    pub(super) fn witnessed(&mut self, what: &str) -> Result<()> {
        if self.world.indicator("Heat").is_none() || people(&self.state, self.world).next().is_none() {
            return Ok(());
        }
        self.effect(&Effect::Level { name: "Heat".into(), by: 1, reason: what.into() })
    }
}
