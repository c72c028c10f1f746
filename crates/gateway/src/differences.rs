//! What differs between two requests, in one sentence.

use serde_json::Value;

/// The characters that are shown around a difference.
const AROUND: usize = 60;

/// The first place at which `now` differs from `recorded`; `None` if they are equal.
pub fn difference(recorded: &Value, now: &Value) -> Option<String> {
    find(recorded, now, "")
}

fn find(recorded: &Value, now: &Value, at: &str) -> Option<String> {
    let place = if at.is_empty() { "the request" } else { at };
    match (recorded, now) {
        _ if recorded == now => None,
        (Value::Object(one), Value::Object(two)) => {
            for (key, value) in one {
                let below = if at.is_empty() { key.clone() } else { format!("{at}.{key}") };
                match two.get(key) {
                    None => return Some(format!("{place} has no `{key}`, which was {}", shown(value))),
                    Some(other) => match find(value, other, &below) {
                        None => (),
                        found => return found,
                    },
                }
            }
            let (key, value) = two.iter().find(|(key, _)| !one.contains_key(*key))?;
            Some(format!("{place} has a new `{key}`: {}", shown(value)))
        }
        (Value::Array(one), Value::Array(two)) => {
            let pairs = one.iter().zip(two).enumerate();
            let first = pairs.filter_map(|(number, (one, two))| find(one, two, &format!("{at}[{number}]"))).next();
            first.or_else(|| {
                let extra = two.get(one.len()).map(|value| format!("; the first new one is {}", shown(value)));
                let missing = one.get(two.len()).map(|value| format!("; the first missing one is {}", shown(value)));
                let which = extra.or(missing).unwrap_or_default();
                Some(format!("{place} has {} entries, {} were recorded{which}", two.len(), one.len()))
            })
        }
        (Value::String(one), Value::String(two)) => Some(texts(one, two, place)),
        _ => Some(format!("{place} was {}, now it is {}", shown(recorded), shown(now))),
    }
}

fn texts(one: &str, two: &str, place: &str) -> String {
    let same = one.chars().zip(two.chars()).take_while(|(one, two)| one == two).count();
    let from = same.saturating_sub(AROUND / 3);
    let part = |text: &str| text.chars().skip(from).take(AROUND).collect::<String>();
    format!("{place} differs at character {same}: recorded {:?}, now {:?}", part(one), part(two))
}

/// The beginning of a value.
fn shown(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(AROUND) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}
