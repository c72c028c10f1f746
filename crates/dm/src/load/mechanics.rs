//! Reads the levels, triggers, gates and clocks of a cartridge. Only `load` uses it.

use super::{CLOCKS, INDICATORS, fault, named_handles};
use crate::md;
use crate::rule::{Condition, effects};
use crate::world::{Cartridge, ClockSpec, Gate, Indicator, Trigger};

pub(super) fn indicators(text: &str, world: &mut Cartridge) {
    for table in md::tables(text) {
        for row in &table.rows {
            let get = |column: &str| table.get(row, column);
            if table.has("indicator") && table.has("min") {
                let number = |column: &str| get(column).parse::<i64>();
                match (number("min"), number("max")) {
                    (Ok(min), Ok(max)) if min <= max => {
                        let start = number("start").unwrap_or(min).clamp(min, max);
                        world.indicators.push(Indicator { name: get("indicator").to_owned(), min, max, start });
                    }
                    _ => world.faults.push(fault(INDICATORS, row.line, "an indicator needs a min and a max")),
                }
            } else if table.has("when") && table.has("event") {
                let read = Condition::parse(get("when")).and_then(|when| Ok((when, effects(get("effect"))?)));
                match read {
                    Ok((when, effects)) => world.triggers.push(Trigger {
                        when,
                        shown: get("when").to_owned(),
                        once: get("once") != "no",
                        event: get("event").to_owned(),
                        effects,
                    }),
                    Err(wrong) => world.faults.push(fault(INDICATORS, row.line, wrong.message)),
                }
            } else if table.has("gate") {
                let places = named_handles(get("places"));
                match Condition::parse(get("open when")) {
                    Ok(open_when) => world.gates.push(Gate {
                        name: get("gate").to_owned(),
                        open_when,
                        shown: get("open when").to_owned(),
                        reason: get("reason").to_owned(),
                        places,
                    }),
                    Err(wrong) => world.faults.push(fault(INDICATORS, row.line, wrong.message)),
                }
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
            let read = effects(get("effect")).and_then(|effects| Ok((effects, Condition::parse(get("until"))?)));
            match read {
                Ok((effects, until)) => world.clocks.push(ClockSpec {
                    id: get("clock").to_owned(),
                    segments,
                    visible: get("visible") != "no",
                    every: get("every").trim_end_matches(" min").parse().ok(),
                    event: get("event").to_owned(),
                    effects,
                    again: get("again") == "yes",
                    until,
                }),
                Err(wrong) => world.faults.push(fault(CLOCKS, row.line, wrong.message)),
            }
        }
    }
}
