//! `roll_check`: a check outside a turn. Only `tools` uses it.

use serde_json::{Value, json};

use super::run::{inside, text};
use crate::check::{Advantage, Ask, throw};
use crate::delta::apply::Change;
use crate::dice::{DICE, Dice};
use crate::files::need;
use crate::pc::Pc;
use crate::turn::ActContext;
use crate::{boot, md, refs};
use acheron_base::Result;

/// A check outside a turn: its dice are a stream of their own, so that no turn's can be foreseen by it. A check that has a name
/// (`what`) is thrown once in a turn and answered with that throw again; one without a name is another check each time. Logged
/// like every throw.
pub(super) fn roll(context: ActContext<'_>, arguments: &Value) -> Result<(Vec<Change>, Value)> {
    let boot = boot::read(context.files, context.world)?;
    let given = arguments["modifier"].as_i64().unwrap_or(0);
    let (stat, what) = (text(arguments, "stat"), md::clip(text(arguments, "what").trim(), 60));
    md::plain("what", &what)?;
    let own = match text(arguments, "pc_path") {
        "" => boot.pc.modifier(stat),
        path => Pc::read(&need(context.files, &inside(path, context.campaign)?)?).modifier(stat),
    };
    let modifier = if given == 0 && !stat.is_empty() { own } else { given };
    let log = context.files.read(DICE)?.unwrap_or_default();
    let place = if what.is_empty() { log.lines().count().to_string() } else { format!("of {}", refs::normal(&what)) };
    let mut dice = Dice::new(context.seed, &format!("{}#check {place}", context.campaign), boot.state.turn);
    let ask = Ask {
        what: match (what.as_str(), stat) {
            ("", "") => "check".into(),
            ("", stat) => format!("check of {stat}"),
            (what, _) => format!("check: {what}"),
        },
        dc: arguments["dc"].as_i64().unwrap_or(12) as i32,
        modifiers: vec![(stat.to_owned(), modifier as i32)],
        advantage: Advantage::named(text(arguments, "advantage"))?,
    };
    let check = throw(&ask, &mut dice);
    let known = |line: &str| log.lines().any(|own| own == line);
    let fresh: String =
        dice.log().lines().filter(|line| what.is_empty() || !known(line)).map(|line| format!("{line}\n")).collect();
    let made = if fresh.is_empty() { Vec::new() } else { vec![Change::Append { path: DICE.into(), text: fresh }] };
    Ok((made, json!(check)))
}
