//! What a narrator adds to a move. It follows only from a move that was done and took time, and it never ends the story: the last
//! step and the last hit point are the kernel's.

use super::Play;
use crate::ending;
use crate::rule::Effect;
use acheron_base::Result;

/// Applies the effects of a narrator's proposal that hold; the others are reported. `before` is the minute in which the move began.
pub(super) fn run(play: &mut Play<'_>, before: u64) -> Result<()> {
    let effects = play.judged.consequences.clone();
    let undone = undone(play, before);
    for effect in effects {
        let why = match undone {
            Some(why) => Some(why),
            None => ends(play, &effect)?,
        };
        match why {
            Some(why) => play.out.reports.push(format!("consequences: `{effect}` is not taken: {why}")),
            None => play.effect(&effect)?,
        }
    }
    Ok(())
}

/// Why nothing can follow from the move.
fn undone(play: &Play<'_>, before: u64) -> Option<&'static str> {
    let what = play.what();
    let understood = |(action, result): &(String, String)| match result.as_str() {
        "impossible" | "not understood" => false,
        // A move that only the narrator tells of: the kernel knows of nothing that was done.
        "told" => *action != what,
        _ => true,
    };
    match () {
        () if !play.out.rows.iter().all(understood) => Some("the kernel knows of nothing that was done"),
        () if play.state.time.minutes() <= before => Some("no time has passed"),
        () => None,
    }
}

/// Why the effect would end what only the kernel ends.
fn ends(play: &Play<'_>, effect: &Effect) -> Result<Option<&'static str>> {
    let (mut without, mut with) = (play.state.clone(), play.state.clone());
    without.fire(play.world)?;
    with.apply(effect, play.world)?;
    with.fire(play.world)?;
    let reached = |state: &crate::state::State| ending::reached(state, play.world).is_some();
    Ok(match () {
        () if with.hp == 0 && without.hp > 0 => Some("the last hit point is the kernel's to take"),
        () if reached(&with) && !reached(&without) => Some("the last step to an ending is the kernel's"),
        () => None,
    })
}
