//! The size of a request in tokens: a bound that costs nothing, and a count for where that does not suffice.

use std::borrow::Cow;
use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;
use std::sync::LazyLock;

use parking_lot::Mutex;

use super::{Message, ModelRequest, tokens};
use acheron_base::{Result, blocking, tokens as vocabulary};

/// The cost of a message beside its text, in tokens.
pub const MESSAGE_TOKENS: u64 = 8;
/// A text of more bytes is counted on a thread of its own.
const LONG_TEXT: usize = 32 << 10;
/// The number of counts that are kept.
const KEPT_COUNTS: usize = 4096;

impl ModelRequest {
    /// Everything that the model reads.
    pub fn texts(&self) -> impl Iterator<Item = Cow<'_, str>> {
        let tools = self.tools.iter().flat_map(|tools| tools.iter());
        let offered = tools.map(|tool| format!("{} {} {}", tool.name, tool.about, tool.arguments).into());
        let system = std::iter::once(Cow::Borrowed(self.system.as_str()));
        system.chain(offered).chain(self.messages.iter().flat_map(Message::texts))
    }

    fn sum(&self, size: impl Fn(&str) -> u64) -> u64 {
        self.texts().map(|text| size(&text) + MESSAGE_TOKENS).sum()
    }

    /// A number of tokens that the request does not exceed with any model.
    pub fn at_most(&self) -> u64 {
        self.sum(vocabulary::at_most)
    }

    /// The number of tokens, estimated from the length. It may be too low.
    pub fn estimated(&self) -> u64 {
        self.sum(tokens)
    }

    /// The number of tokens, counted; rather too high than too low.
    pub async fn counted(&self) -> Result<u64> {
        let mut sum = 0;
        for text in self.texts() {
            sum += MESSAGE_TOKENS + counted(&text).await?;
        }
        Ok(sum)
    }
}

/// The counts of texts, by their hash: the messages of a turn are sent again with every round.
static COUNTS: LazyLock<(RandomState, Mutex<HashMap<u64, u64>>)> = LazyLock::new(Default::default);

/// The tokens of a text, counted; a text that was counted before costs nothing.
pub async fn counted(text: &str) -> Result<u64> {
    let (hasher, counts) = &*COUNTS;
    let hash = hasher.hash_one(text);
    if let Some(known) = counts.lock().get(&hash) {
        return Ok(*known);
    }
    let count = if text.len() <= LONG_TEXT {
        vocabulary::count(text)
    } else {
        let text = text.to_owned();
        blocking(move || Ok(vocabulary::count(&text))).await?
    };
    let mut counts = counts.lock();
    if counts.len() >= KEPT_COUNTS {
        counts.clear();
    }
    counts.insert(hash, count);
    Ok(count)
}
