//! How many bytes one agent may keep. Every door by which an agent fills the memory or the disk of the host asks
//! [`Quotas::check`], the one function that decides. Used by `events`, `services` and `host`; `spec` reads the limits.

use parking_lot::RwLock;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use acheron_base::{Code, Error, Result};

/// The bytes that one agent may keep on this host. What would go beyond a limit is refused (`EDQUOT`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ByteLimits {
    /// The signals from one sender in the event log of one agent. Old ones go by `retention`.
    #[schemars(range(min = 1))]
    pub signals_bytes: u64,
    /// All versions of all memories.
    #[schemars(range(min = 1))]
    pub memory_bytes: u64,
    /// Pages and conversations of recall, open prompts, campaigns of dm, runs of phases.
    #[schemars(range(min = 1))]
    pub files_bytes: u64,
    /// All versions of all symbols, kits and agents that it put into the symbols, which all agents share.
    #[schemars(range(min = 1))]
    pub symbols_bytes: u64,
    /// The transcripts of turns. If there are more, the oldest go; a turn that alone has more ends.
    #[schemars(range(min = 1))]
    pub turns_bytes: u64,
    /// Arguments and results of ended jobs. If there are more, the oldest jobs go.
    #[schemars(range(min = 1))]
    pub jobs_bytes: u64,
    /// The messages in one inbox, and their bytes. One agent fills at most half of another's.
    #[schemars(range(min = 1))]
    pub mail_messages: u64,
    #[schemars(range(min = 1))]
    pub mail_bytes: u64,
    /// The items in one queue, with its dead letters, and their bytes.
    #[schemars(range(min = 1))]
    pub queue_items: u64,
    #[schemars(range(min = 1))]
    pub queue_bytes: u64,
    /// The links in one page of recall.
    #[schemars(range(min = 1))]
    pub links_per_page: u64,
}

impl Default for ByteLimits {
    fn default() -> Self {
        ByteLimits {
            signals_bytes: 64 << 20,
            memory_bytes: 512 << 20,
            files_bytes: 2 << 30,
            symbols_bytes: 16 << 20,
            turns_bytes: 512 << 20,
            jobs_bytes: 512 << 20,
            mail_messages: 200_000,
            mail_bytes: 256 << 20,
            queue_items: 1_000_000,
            queue_bytes: 1 << 30,
            links_per_page: 2_000,
        }
    }
}

/// What is limited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuotaKind {
    Signals,
    Memories,
    Files,
    Symbols,
    Turn,
    LinksPerPage,
    /// Messages and bytes of one inbox, and of one sender in it.
    MailMessages,
    Mail,
    MailMessagesOfOne,
    MailOfOne,
    /// Items and bytes of one queue.
    QueueItems,
    Queue,
}

/// What to do about an inbox or a queue that is full.
const LATER: &str = "try again when some are dealt with";

/// The limits as the mountspec has them now.
#[derive(Default)]
pub struct Quotas(RwLock<ByteLimits>);

impl Quotas {
    pub fn set(&self, limits: ByteLimits) {
        *self.0.write() = limits;
    }

    pub fn limits(&self) -> ByteLimits {
        *self.0.read()
    }

    /// Refuses `more` of something of which an agent keeps `used`, if that is beyond its limit.
    pub fn check(&self, what: QuotaKind, used: u64, more: u64) -> Result<()> {
        let limits = self.limits();
        let (name, limit, unit, kept, remedy) = match what {
            QuotaKind::Signals => {
                ("signals_bytes", limits.signals_bytes, "bytes", "the signals from this sender", "send less")
            }
            QuotaKind::Memories => ("memory_bytes", limits.memory_bytes, "bytes", "the memories", "write less"),
            QuotaKind::Files => ("files_bytes", limits.files_bytes, "bytes", "the files of the agent", "remove some"),
            QuotaKind::Symbols => {
                ("symbols_bytes", limits.symbols_bytes, "bytes", "the symbols of the agent", "write less")
            }
            QuotaKind::Turn => {
                ("turns_bytes", limits.turns_bytes, "bytes", "the transcript of the turn", "begin another turn")
            }
            QuotaKind::LinksPerPage => ("links_per_page", limits.links_per_page, "links", "the page", "divide it"),
            QuotaKind::MailMessages => ("mail_messages", limits.mail_messages, "messages", "the inbox", LATER),
            QuotaKind::Mail => ("mail_bytes", limits.mail_bytes, "bytes", "the inbox", LATER),
            QuotaKind::MailMessagesOfOne => {
                ("mail_messages", limits.mail_messages / 2, "messages", "your part of the inbox", LATER)
            }
            QuotaKind::MailOfOne => ("mail_bytes", limits.mail_bytes / 2, "bytes", "your part of the inbox", LATER),
            QuotaKind::QueueItems => ("queue_items", limits.queue_items, "items", "the queue", LATER),
            QuotaKind::Queue => ("queue_bytes", limits.queue_bytes, "bytes", "the queue", LATER),
        };
        let total = used.saturating_add(more);
        if total <= limit {
            return Ok(());
        }
        // What is counted goes by itself when it is dealt with; bytes are a limit of what one keeps.
        let code = match what {
            QuotaKind::MailMessages | QuotaKind::MailMessagesOfOne | QuotaKind::QueueItems => Code::QueueFull,
            _ => Code::QuotaExceeded,
        };
        Err(Error::new(
            code,
            format!(
                "{kept} would have {total} {unit}, and at most {limit} are allowed: {remedy}, or have the operator raise \
             `limits.{name}` in the mountspec"
            ),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_reached_and_not_passed_and_the_refusal_names_it() {
        let quotas = Quotas::default();
        quotas.set(ByteLimits { memory_bytes: 100, ..ByteLimits::default() });
        assert!(quotas.check(QuotaKind::Memories, 40, 60).is_ok());
        let error = quotas.check(QuotaKind::Memories, 41, 60).unwrap_err();
        assert_eq!((error.code.name(), error.errno()), ("quota_exceeded", libc::EDQUOT));
        assert!(error.message.contains("`limits.memory_bytes` in the mountspec"), "{error}");
        assert!(quotas.check(QuotaKind::Files, 1 << 20, u64::MAX).is_err());
    }
}
