//! The messages of transcripts that a proposal may be made from and may cite, cut into requests.

use crate::block::injected;
use crate::message::{Name, Role};
use crate::page::Class;

/// One message, or a part of a long one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceMessage {
    /// The name under which a request shows it: `m1`.
    pub id: String,
    /// `episodic-raw/<date>/<conversation>/<message>.md`
    pub path: String,
    pub role: Role,
    pub text: String,
}

/// What is read at once: messages of one conversation, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceRequest {
    /// `episodic-raw/<date>/<conversation>`
    pub transcript: String,
    pub messages: Vec<SourceMessage>,
    /// The file of the last message; nothing as long as more parts of it follow.
    pub last: Option<String>,
}

impl SourceRequest {
    /// The name of the conversation.
    pub fn conversation(&self) -> &str {
        self.transcript.rsplit('/').next().unwrap_or_default()
    }

    /// The day on which it began.
    pub fn date(&self) -> &str {
        self.transcript.split('/').rev().nth(1).unwrap_or_default()
    }
}

/// The folder and the name of a message, if the page is one of a transcript.
pub fn transcript_of(path: &str) -> Option<(&str, Name)> {
    let (folder, file) = path.rsplit_once('/')?;
    (Class::of(path) == Class::Raw).then_some(())?;
    Some((folder, Name::parse(file)?))
}

/// Whether a person or a model said this. What the loop put there is not: a page that was recalled proves nothing about itself.
pub fn is_source(role: Role, text: &str) -> bool {
    matches!(role, Role::User | Role::Assistant) && !injected(text) && !text.trim().is_empty()
}

/// Cuts the messages of one transcript into requests of at most so many bytes. A longer message goes into several, part by part.
pub fn requests(transcript: &str, messages: &[(Name, String)], most: usize) -> Vec<SourceRequest> {
    let most = most.max(64);
    let mut all: Vec<SourceRequest> = Vec::new();
    let mut room = 0;
    for (name, text) in messages {
        let parts = if is_source(name.role, text) { parts(text, most) } else { Vec::new() };
        for part in &parts {
            if all.is_empty() || part.len() > room {
                all.push(SourceRequest { transcript: transcript.to_owned(), messages: Vec::new(), last: None });
                room = most;
            }
            room -= part.len();
            if let Some(request) = all.last_mut() {
                let (id, path) = (format!("m{}", request.messages.len() + 1), format!("{transcript}/{}", name.file));
                request.messages.push(SourceMessage { id, path, role: name.role, text: (*part).to_owned() });
            }
        }
        if let Some(request) = all.last_mut() {
            request.last = Some(name.file.clone());
        }
    }
    all
}

/// A text in pieces, each ending at a line or a blank where it can.
fn parts(text: &str, most: usize) -> Vec<&str> {
    let (mut rest, mut parts) = (text, Vec::new());
    while rest.len() > most {
        let end = rest.floor_char_boundary(most);
        let end = rest[..end].rfind(['\n', ' ']).filter(|at| *at > most / 2).map_or(end, |at| at + 1);
        parts.push(&rest[..end]);
        rest = &rest[end..];
    }
    parts.push(rest);
    parts
}
