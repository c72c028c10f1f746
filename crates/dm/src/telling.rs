//! The words of a turn that a player reads: a narrator's, as far as the turn bears them out, and always the kernel's own answer to
//! what was asked. `turn` uses it.

use crate::deeds::{TextKind, TurnDeeds};
use crate::grammar::sentence;
use crate::lint;
use crate::play::Outcome;
use crate::proposal::FilteredProposal;
use crate::refs::normal;
use crate::world::Cartridge;

/// The words of a turn, and what was taken out of them.
pub struct TurnText {
    /// The narrator's scene; the kernel sets its own where there is none.
    pub scene: Option<String>,
    pub action: String,
    pub options: Vec<String>,
    pub reports: Vec<String>,
    /// What does not fit what came of the move.
    pub set_aside: Vec<String>,
}

pub fn tell(filtered: &FilteredProposal, out: &Outcome, deeds: &TurnDeeds<'_>) -> TurnText {
    let mut reports = Vec::new();
    let mut clean = |field: &str, text: &str| {
        let kind = match field {
            "scene" => TextKind::Scene,
            "options" => TextKind::Suggestion,
            _ => TextKind::Prose,
        };
        let cleaned = deeds.clean(text, kind);
        reports.extend(cleaned.reports.iter().map(|why| format!("{field}: {why}")));
        Some(cleaned.text).filter(|text| !text.is_empty())
    };
    let scene = filtered.scene.as_ref().and_then(|scene| clean("scene", scene));
    // Where nothing was done, a narrator's prose would say otherwise than the table below it.
    let undone = out.rows.iter().any(|(_, result)| matches!(result.as_str(), "impossible" | "not understood"));
    let mut set_aside = out.set_aside.clone();
    if undone && filtered.prose(out.tier()).is_some() {
        set_aside.push("prose: the move was not done, and the table says so".into());
    }
    let prose = filtered.prose(out.tier()).filter(|_| !undone).and_then(|prose| clean("prose", prose));
    let options = filtered.options.iter().filter(|option| clean("options", option).as_deref() == Some(option.as_str()));
    let options = options.cloned().collect();
    // A scene of which too little is left is none.
    let scene = scene.filter(|scene| lint::scene(scene).is_ok());
    TurnText { scene, action: action(prose.as_deref(), out, deeds.world), options, reports, set_aside }
}

/// The text about the action: the narrator's if there is one, else the kernel's; both where the kernel's is an answer.
fn action(prose: Option<&str>, out: &Outcome, world: &Cartridge) -> String {
    let own = match out.action.as_str() {
        "" if out.no_progress.is_some() => "Nothing comes of it.",
        "" => "It is done.",
        own => own,
    };
    match prose {
        None => own.to_owned(),
        Some(prose) if is_answer(out, world) && !normal(prose).contains(&normal(own)) => format!("{prose}\n\n{own}"),
        Some(prose) => prose.to_owned(),
    }
}

/// Whether the kernel's text is what the move asked for: something that an author wrote, or what is told and changes nothing.
fn is_answer(out: &Outcome, world: &Cartridge) -> bool {
    let told = |text: &str| {
        let text = text.trim().trim_end_matches('.');
        text.chars().count() > 8 && out.action.contains(sentence(text).trim_end_matches('.'))
    };
    let stages = world.quests.iter().flat_map(|quest| &quest.stages).chain(world.deeds.iter().map(|deed| &deed.step));
    let objects = world.objects.iter().any(|own| {
        told(&own.summary)
            || told(own.field("greeting"))
            || own.facts.iter().any(|fact| told(&fact.text))
            || own.topics.iter().any(|topic| told(&topic.answer.text))
    });
    out.said || objects || stages.into_iter().any(|stage| told(&stage.text))
}
