//! Reads the levels, triggers, gates and clocks of a cartridge. Only `load` uses it.

use super::{CLOCKS, INDICATORS, fault, named_handles};
use crate::md;
use crate::rule::{Condition, effects_each};
use crate::world::{Cartridge, ClockSpec, Gate, Indicator, Trigger};

pub(super) fn indicators(text: &str, world: &mut Cartridge) {
    for table in md::tables(text) {
        for row in &table.rows {
            let get = |column: &str| table.get(row, column);
            if table.has("indicator") && table.has("min") {
                let number = |column: &str| get(column).parse::<i64>();
                match (number("min"), number("max")) {
                    (Ok(min), Ok(max)) if min > max => {
                        let message = format!("min {min} is more than max {max}");
                        world.faults.push(fault(INDICATORS, row.line, message));
                    }
                    (Ok(min), Ok(max)) => {
                        let start = number("start").unwrap_or(min).clamp(min, max);
                        world.indicators.push(Indicator { name: get("indicator").to_owned(), min, max, start });
                    }
                    _ => world.faults.push(fault(INDICATORS, row.line, "an indicator needs a min and a max")),
                }
            } else if table.has("when") && table.has("event") {
                let ((when, wrong), (effects, bad)) = (Condition::parse_each(get("when")), effects_each(get("effect")));
                world.faults.extend(wrong.into_iter().chain(bad).map(|wrong| fault(INDICATORS, row.line, wrong)));
                world.triggers.push(Trigger {
                    when,
                    shown: get("when").to_owned(),
                    once: get("once") != "no",
                    event: get("event").to_owned(),
                    effects,
                });
            } else if table.has("gate") {
                let places = named_handles(get("places"));
                let (open_when, wrong) = Condition::parse_each(get("open when"));
                world.faults.extend(wrong.into_iter().map(|wrong| fault(INDICATORS, row.line, wrong)));
                world.gates.push(Gate {
                    name: get("gate").to_owned(),
                    open_when,
                    shown: get("open when").to_owned(),
                    reason: get("reason").to_owned(),
                    places,
                });
            }
        }
    }
}

pub(super) fn clocks(text: &str, world: &mut Cartridge) {
    for table in md::tables(text).into_iter().filter(|table| table.has("clock")) {
        for row in &table.rows {
            let get = |column| table.get(row, column);
            let segments = get("segments").parse().ok().filter(|segments| (1..=24).contains(segments));
            let Some(segments) = segments else {
                world.faults.push(fault(CLOCKS, row.line, "a clock has 1 to 24 segments"));
                continue;
            };
            let ((effects, wrong), (until, bad)) = (effects_each(get("effect")), Condition::parse_each(get("until")));
            world.faults.extend(wrong.into_iter().chain(bad).map(|wrong| fault(CLOCKS, row.line, wrong)));
            world.clocks.push(ClockSpec {
                id: get("clock").to_owned(),
                segments,
                visible: get("visible") != "no",
                every: get("every").trim_end_matches(" min").parse().ok(),
                event: get("event").to_owned(),
                effects,
                again: get("again") == "yes",
                until,
            });
        }
    }
}
