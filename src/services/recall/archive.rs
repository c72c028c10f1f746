//! Archives conversations: copies them, byte for byte, to the transcripts of the wiki.

use schemars::JsonSchema;
use serde::Serialize;

use super::talks::LockedTalk;
use super::wiki::Wiki;
use acheron_base::{Error, Result};

/// The result of archiving.
#[derive(Serialize, JsonSchema)]
pub struct Archived {
    /// `episodic-raw/<date>/<conversation>`
    pub path: String,
    pub messages: usize,
    /// How many of them were not there before.
    pub added: usize,
}

/// Copies the messages of a conversation. Doing it again adds what was said since; what is there is never changed.
pub fn archive(held: &LockedTalk, wiki: &Wiki) -> Result<Archived> {
    let (talks, id) = (&held.talks, &held.id);
    let messages = talks.messages(id)?;
    let Some(first) = messages.first() else {
        return Err(Error::invalid(format!("the conversation {id} has no messages yet")));
    };
    let path = format!("episodic-raw/{}/{id}", date(first.ns));
    let mut added = 0;
    for name in &messages {
        let bytes = talks.read(id, &name.file)?;
        added += usize::from(wiki.put_away(&format!("{path}/{}", name.file), &bytes)?);
    }
    Ok(Archived { path, messages: messages.len(), added })
}

/// The day of an instant, in UTC: `2026-11-16`. Counted from a first of March, so that the leap day is the last of a year.
pub fn date(ns: u128) -> String {
    let days = ns / 1_000_000_000 / 86_400 + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    format!("{:04}-{month:02}-{day:02}", era * 400 + year + next)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_is_named_as_the_calendar_does() {
        let day = 86_400u128;
        for (seconds, wanted) in [
            (0, "1970-01-01"),
            (59 * day - 1, "1970-02-28"),
            (951_782_400, "2000-02-29"),
            (951_868_800, "2000-03-01"),
            (1_735_689_599, "2024-12-31"),
            (1_794_787_200, "2026-11-16"),
            (4_107_542_400, "2100-03-01"),
        ] {
            assert_eq!(date(seconds * 1_000_000_000), wanted, "{seconds}");
        }
    }
}
