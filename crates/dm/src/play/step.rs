//! A step that an author wrote, of a quest or on its own: whether a move means it, and how it goes.

use super::Play;
use super::travel::spoken as spoken_time;
use crate::check::Tier;
use crate::grammar::{joined, sentence, the};
use crate::hud::people;
use crate::input::Header;
use crate::known::known;
use crate::rule::{Condition, Effect, Order, Term};
use crate::verbs::{Verb, alike, meaning, says, small_talk};
use crate::world::{ObjectKind, Stage};
use acheron_base::Result;

/// How a step went.
pub(super) enum Step {
    Done,
    /// It did not come off; the reason and the price are told.
    Failed,
}

/// Whether the move means this step: its place, its header, its words; a person who is absent, unconscious or hostile takes
/// part in none.
pub(super) fn means(play: &Play<'_>, step: &Stage) -> bool {
    let here = step.at.as_ref().is_none_or(|at| *at == play.state.location);
    let header = step.headers.iter().any(|own| play.means_header(*own));
    if !here || !header || !present(play, step) || !spoken(play, step) {
        return false;
    }
    // Who asks about a price has not paid it.
    if asks_about(play) && !price(step).is_empty() {
        return false;
    }
    // Talking and looking go on as usual where the step cannot be done yet; an act is told what it lacks.
    let acting = matches!(play.found.header, Header::Act | Header::Cast | Header::Manage);
    play.state.holds(&step.needs) || acting && !play.means_header(Header::Ask)
}

/// Whether the move asks about something, and offers nothing.
pub(super) fn asks_about(play: &Play<'_>) -> bool {
    let words = crate::refs::normal(&play.found.body);
    let asks = words.split(' ').any(|word| word == "about") || words.starts_with("what ") || words.starts_with("how ");
    asks && play.means_header(Header::Ask)
}

/// The price of a step, in words: the levels that it needs and takes. Empty where it has none.
pub(super) fn price(step: &Stage) -> Vec<String> {
    let needs = |level: &String| step.needs.0.iter().any(|term| matches!(term, Term::Level(own, ..) if own == level));
    let taken = step.gives.iter().filter_map(|effect| match effect {
        Effect::Level { name, by, .. } if *by < 0 && needs(name) => Some(format!("{} {name}", by.abs())),
        _ => None,
    });
    taken.collect()
}

/// The step here that the move asks the price of.
pub(super) fn priced<'a>(play: &Play<'a>, npc: &str) -> Option<&'a Stage> {
    let world = play.world;
    let stages = world.quests.iter().filter_map(|quest| {
        let own = play.state.quests.get(&quest.handle).filter(|own| own.status == "active")?;
        quest.stages.get(own.stage)
    });
    let mut all = stages.chain(world.deeds.iter().map(|deed| &deed.step));
    all.find(|step| {
        let here = step.at.as_ref().is_none_or(|at| *at == play.state.location);
        let said = step.says.iter().any(|own| says(&play.found.body, own));
        here && said && step.target == npc && !price(step).is_empty() && play.state.holds(&step.needs)
    })
}

/// Whether the move means this step once more, after it was done. A look is always a look.
pub(super) fn means_again(play: &Play<'_>, step: &Stage) -> bool {
    let here = step.at.as_ref().is_none_or(|at| *at == play.state.location);
    let header = step.headers.iter().any(|own| *own != Header::Look && play.means_header(*own));
    here && header && !step.says.is_empty() && present(play, step) && spoken(play, step)
}

/// Whether the people of a step are there and will have a part in it.
fn present(play: &Play<'_>, step: &Stage) -> bool {
    [&step.target, &step.to].into_iter().all(|own| willing(play, step, own))
}

fn willing(play: &Play<'_>, step: &Stage, handle: &str) -> bool {
    let Some(npc) = play.world.object(handle).filter(|own| own.kind == ObjectKind::Npc) else { return true };
    let here = people(&play.state, play.world).any(|own| own.handle == npc.handle);
    // Somebody hostile takes part only in what changes their mood.
    let mends = step.gives.iter().any(|effect| matches!(effect, Effect::Mood(who, _) if *who == npc.handle));
    here && (mends || play.state.mood(npc) != "hostile")
}

/// Whether the words of the move name this step.
fn spoken(play: &Play<'_>, step: &Stage) -> bool {
    let body = &play.found.body;
    // Whoever is in a place need not name it.
    let here = step.target == play.state.location && !step.says.is_empty();
    let named = step.target.is_empty() || here || play.refs.contains(&step.target) || alone(play, step);
    let person = play.world.object(&step.target).is_some_and(|own| own.kind == ObjectKind::Npc);
    if !person && !recipient(play, step) {
        return false;
    }
    if person && small_talk(body, &play.name_words()) {
        return false;
    }
    if step.says.is_empty() {
        // Without words of its own, a step is meant by any act on its target that does not plainly mean something else.
        let other = matches!(
            play.verb(),
            Some(
                Verb::Drop
                    | Verb::Eat
                    | Verb::Inventory
                    | Verb::Status
                    | Verb::Map
                    | Verb::Wait
                    | Verb::Rest
                    | Verb::Impossible(_)
            )
        );
        return named && !(other && step.headers.contains(&Header::Act));
    }
    // Of several people, the first that is named is spoken to.
    let first = first_person(play);
    if person && named && first.is_some_and(|own| *own != step.target) {
        return false;
    }
    let bare = matches!(play.refs, [only] if *only == step.target) && play.unnamed_words().is_empty();
    let said = |own: &String| says(body, own) && (named || own.trim().contains(' '));
    bare || step.says.iter().any(said)
}

fn first_person<'a>(play: &Play<'a>) -> Option<&'a String> {
    play.refs.iter().find(|own| play.world.object(own).is_some_and(|own| own.kind == ObjectKind::Npc))
}

/// Whether the step is about the only person here, and the move talks or begins with a word of the step: `pay the toll`.
fn alone(play: &Play<'_>, step: &Stage) -> bool {
    let mut here = people(&play.state, play.world);
    let only = here.next().is_some_and(|npc| npc.handle == step.target) && here.next().is_none();
    let first = meaning(&play.found.body).into_iter().next().unwrap_or_default();
    only && (play.means_header(Header::Ask) || step.says.iter().any(|own| alike(own, &first)))
}

/// Whether somebody who is named as the one to be given something is the one of the step.
fn recipient(play: &Play<'_>, step: &Stage) -> bool {
    let giving = play.verb() == Some(Verb::Give) || !step.to.is_empty();
    first_person(play).filter(|_| giving).is_none_or(|own| *own == step.to)
}

/// Plays a step: what it needs, its check, its effects. `name` stands before the check.
pub(super) fn play_step(play: &mut Play<'_>, name: &str, step: &Stage) -> Result<Step> {
    if !play.state.holds(&step.needs) {
        let why = format!("it needs {}", lacking(play, &step.needs));
        play.effect(&Effect::Minutes(5))?;
        play.out.action = "It cannot be done yet.".into();
        play.impossible(why, "look for what is missing, or try another way in");
        return Ok(Step::Failed);
    }
    let tier = match step.dc {
        Some(dc) => play.check_at(name, &step.stat, dc),
        None => Tier::Success,
    };
    if tier == Tier::Failure {
        play.pay(&step.cost)?;
        play.out.action = match step.fails.as_str() {
            "" => "You try, and it does not come off.".into(),
            own => sentence(own),
        };
        play.out.no_progress = Some("the attempt fails at a price".into());
        play.out.alternative = Some("another try is open, and so is another way".into());
        return Ok(Step::Failed);
    }
    if !step.text.is_empty() {
        play.out.action = sentence(&step.text);
    }
    play.effects(&step.gives)?;
    play.effect(&Effect::Minutes(if tier == Tier::Partial { 20 } else { 10 }))?;
    if tier == Tier::Partial {
        play.out.cost = vec![spoken_time(20)];
    }
    if tier == Tier::Great && play.state.hp < crate::state::FULL_HP {
        play.event("it goes better than you hoped, and gives you heart".into());
        play.effect(&Effect::Hp(1))?;
    }
    Ok(Step::Done)
}

/// The terms of a condition that do not hold, in words.
pub(super) fn lacking(play: &Play<'_>, needs: &Condition) -> String {
    let world = play.world;
    let missing = needs.0.iter().filter(|term| !play.state.holds(&Condition(vec![(*term).clone()])));
    let words = missing.map(|term| match term {
        Term::Has(item) if world.object(item).is_some_and(|own| known(&play.state, world, own)) => {
            the(world.name(item))
        }
        Term::Has(_) => "something that you have not found yet".to_owned(),
        Term::Quest(quest, status) => format!("{} to be {status}", the(world.name(quest))),
        Term::Clue(_) => "something that you do not know yet".to_owned(),
        Term::At(place) => format!("to be at {}", the(world.name(place))),
        Term::Seen(place) => format!("to have been at {}", the(world.name(place))),
        Term::Gone(object) => format!("{} to be gone", the(world.name(object))),
        Term::Night => "the night".to_owned(),
        Term::ClockFull(clock) => format!("the {clock} to be full"),
        Term::Level(name, Order::AtLeast, than) => format!("{name} of {than} or more"),
        Term::Level(name, Order::AtMost, than) => format!("{name} of {than} or less"),
        Term::Level(name, _, _) => format!("another {name}"),
        Term::Not(_) => "something to be otherwise".to_owned(),
    });
    joined(&words.collect::<Vec<_>>())
}
