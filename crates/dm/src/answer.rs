//! The answer to the last input, whatever it was: a turn, a question, a control instruction or a refusal. `output` shows it.
//!
//! It is kept beside the journal and is no part of it: a replay does not compare it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::act::JOURNAL;
use crate::files::ReadFiles;
use crate::fold::one_line;
use crate::input::Refusal;
use crate::turn::ActContext;
use crate::{boot, hud, md};
use acheron_base::{Code, Error, Result};

/// The file of the answer.
pub const ANSWER: &str = ".kernel/answer.json";

/// The answer to an input, and the length of the journal after it: an act that came later has an output of its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LastAnswer {
    pub entries: usize,
    pub output: String,
    /// Code and message of a refusal.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub error: Value,
}

impl LastAnswer {
    /// The answer as it stands on disk, unless the campaign has moved on since.
    pub fn read(files: &dyn ReadFiles) -> Result<Option<LastAnswer>> {
        let Some(text) = files.read(ANSWER)? else { return Ok(None) };
        let found: Option<LastAnswer> = serde_json::from_str(&text).ok();
        let now = entries(files)?;
        Ok(found.filter(|answer| answer.entries == now))
    }

    pub fn new(files: &dyn ReadFiles, output: String, error: Value) -> Result<LastAnswer> {
        Ok(LastAnswer { entries: entries(files)?, output, error })
    }
}

fn entries(files: &dyn ReadFiles) -> Result<usize> {
    Ok(files.read(JOURNAL)?.map_or(0, |text| text.lines().count()))
}

/// The answer to an input while it is played: it stands only where the host was stopped before it had another.
pub fn unfinished(input: &str) -> Error {
    let input = md::clip(&one_line(input), 200);
    let sentence =
        "this input was not played: the host stopped, or the call was cancelled; nothing of it was done, send it again";
    Error::new(Code::Interrupted, Refusal { sentence: sentence.into(), example: input }.render().trim_end())
}

/// The text of `output`.
pub fn shown(files: &dyn ReadFiles) -> Result<String> {
    if let Some(answer) = LastAnswer::read(files)? {
        return Ok(answer.output);
    }
    let turn = files.read(".kernel/output.md")?;
    Ok(turn.unwrap_or_else(|| "nothing has been played yet; send <initialize>\n".to_owned()))
}

/// A refusal as the player sees it: the cause, the headers, one example, and the HUD of a campaign that has begun.
pub fn refused(context: Option<ActContext<'_>>, fault: &Error) -> String {
    let block = match fault.message.starts_with("[Error] ") {
        true => format!("{}\n", fault.message.trim_end()),
        false => Refusal::plain(&fault.message).render(),
    };
    // A refusal is shown whatever state the files are in: without a HUD where there is none to show.
    match context.map(hud_block) {
        Some(Ok(hud)) => format!("{block}{hud}"),
        _ => block,
    }
}

/// The HUD as the last slot of an answer; nothing before the campaign has begun.
pub(crate) fn hud_block(context: ActContext<'_>) -> Result<String> {
    if boot::uninitialised(context.files)?.is_some() {
        return Ok(String::new());
    }
    let state = boot::read(context.files, context.world)?.state;
    let entries = hud::entries(&state, context.world);
    Ok(format!("\n[HUD]\n{}", hud::render(&state, context.world, &entries)))
}
