//! What `acheron top` shows, and what a key does. Pure.

use std::collections::VecDeque;
use std::path::PathBuf;

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::super::log::LogLine;
use super::approvals::PendingApproval;
use super::feed::{LINES, TopSnapshot};
use crate::host::overview::{HostOverview, JobOverview};

/// A key that means something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyPress {
    Up,
    Down,
    Switch,
    Letter(char),
    Quit,
}

impl KeyPress {
    pub fn of(key: KeyEvent) -> Option<KeyPress> {
        if key.kind == KeyEventKind::Release {
            return None;
        }
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('c' | 'd') if control => Some(KeyPress::Quit),
            KeyCode::Char(_) if control => None,
            KeyCode::Esc => Some(KeyPress::Letter('\u{1b}')),
            KeyCode::Up | KeyCode::Char('k') => Some(KeyPress::Up),
            KeyCode::Down | KeyCode::Char('j') => Some(KeyPress::Down),
            KeyCode::Tab => Some(KeyPress::Switch),
            KeyCode::Char('q') => Some(KeyPress::Quit),
            KeyCode::Char(letter) => Some(KeyPress::Letter(letter)),
            _ => None,
        }
    }
}

/// What the command does after a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TopAction {
    None,
    Quit,
    Write { path: PathBuf, text: String, said: String },
}

/// The list that the arrows move in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TopList {
    #[default]
    Jobs,
    Approvals,
}

/// A question before something is done.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Asked {
    question: String,
    then: TopAction,
}

#[derive(Default)]
pub struct TopScreen {
    pub host: Option<HostOverview>,
    pub approvals: Vec<PendingApproval>,
    pub lines: VecDeque<LogLine>,
    pub calls_per_second: f64,
    pub list: TopList,
    /// The name of the chosen row: rows come and go above it.
    chosen: Option<String>,
    asked: Option<Asked>,
    said: String,
}

impl TopScreen {
    pub fn update(&mut self, seen: TopSnapshot) {
        if let Some(before) = &self.host {
            let ms = seen.host.now_ms.saturating_sub(before.now_ms).max(1);
            self.calls_per_second = seen.host.calls.saturating_sub(before.calls) as f64 * 1000.0 / ms as f64;
        }
        // A question that comes up for the first time is what the operator wants to see.
        if self.approvals.is_empty() && !seen.approvals.is_empty() && self.asked.is_none() {
            self.list = TopList::Approvals;
        }
        self.host = Some(seen.host);
        self.approvals = seen.approvals;
        if self.approvals.is_empty() {
            self.list = TopList::Jobs;
        }
        self.lines.extend(seen.lines);
        let over = self.lines.len().saturating_sub(LINES);
        self.lines.drain(..over);
    }

    pub fn say(&mut self, text: String) {
        self.said = text;
    }

    pub fn jobs(&self) -> &[JobOverview] {
        self.host.as_ref().map_or(&[], |host| &host.jobs)
    }

    fn names(&self) -> Vec<&str> {
        match self.list {
            TopList::Jobs => self.jobs().iter().map(|job| job.job_id.as_str()).collect(),
            TopList::Approvals => self.approvals.iter().map(|approval| approval.id.as_str()).collect(),
        }
    }

    /// The chosen row of the list; the first if the one that was chosen has gone.
    pub fn row(&self) -> Option<usize> {
        let names = self.names();
        let at = self.chosen.as_deref().and_then(|chosen| names.iter().position(|name| *name == chosen));
        at.or((!names.is_empty()).then_some(0))
    }

    fn move_by(&mut self, step: isize) {
        let Some(row) = self.row() else { return };
        let names = self.names();
        let to = row.saturating_add_signed(step).min(names.len() - 1);
        self.chosen = Some(names[to].to_owned());
    }

    /// The line at the bottom: a question, what was said last, or the keys.
    pub fn footer(&self) -> String {
        match (&self.asked, self.said.as_str()) {
            (Some(asked), _) => format!("{} (y/n)", asked.question),
            (None, "") => "q quit  ↑↓ choose  Tab list  c cancel job  a approve  d deny".to_owned(),
            (None, said) => said.to_owned(),
        }
    }

    pub fn press(&mut self, key: KeyPress) -> TopAction {
        self.said.clear();
        if let Some(asked) = self.asked.take() {
            return match key {
                KeyPress::Letter('y' | 'Y') => asked.then,
                KeyPress::Quit => TopAction::Quit,
                _ => TopAction::None,
            };
        }
        match key {
            KeyPress::Quit => return TopAction::Quit,
            KeyPress::Up => self.move_by(-1),
            KeyPress::Down => self.move_by(1),
            KeyPress::Switch if self.list == TopList::Jobs && !self.approvals.is_empty() => {
                self.list = TopList::Approvals;
            }
            KeyPress::Switch => self.list = TopList::Jobs,
            KeyPress::Letter('c') => self.ask_to_cancel(),
            KeyPress::Letter('a') => self.ask_to_decide("allow", "allow", "allowed"),
            KeyPress::Letter('d') => self.ask_to_decide("deny", "deny: the operator said no", "denied"),
            KeyPress::Letter(_) => (),
        }
        TopAction::None
    }

    fn mountpoint(&mut self) -> Option<PathBuf> {
        let mountpoint = self.host.as_ref().and_then(|host| host.mountpoint.clone());
        if mountpoint.is_none() {
            self.said = "the host has no mount: nothing can be written".to_owned();
        }
        mountpoint
    }

    fn ask_to_cancel(&mut self) {
        let chosen = match self.list {
            TopList::Jobs => self.row().and_then(|row| self.jobs().get(row).cloned()),
            TopList::Approvals => None,
        };
        let Some(job) = chosen else {
            self.said = "no job is chosen".to_owned();
            return;
        };
        let Some(mountpoint) = self.mountpoint() else { return };
        let path = mountpoint.join("agents").join(&job.agent).join("jobs").join(&job.job_id).join("control/cancel");
        let said = format!("{} is cancelled", job.job_id);
        let question = format!("cancel {}.{} of {}?", job.service, job.operation, job.agent);
        self.asked = Some(Asked { question, then: TopAction::Write { path, text: "\n".to_owned(), said } });
    }

    fn ask_to_decide(&mut self, verb: &str, text: &str, done: &str) {
        let chosen = match self.list {
            TopList::Approvals => self.row().and_then(|row| self.approvals.get(row).cloned()),
            TopList::Jobs => None,
        };
        let Some(approval) = chosen else {
            self.said = "no approval is chosen; Tab goes to their list".to_owned();
            return;
        };
        let Some(mountpoint) = self.mountpoint() else { return };
        let path = mountpoint.join("approvals").join(&approval.id).join("decision");
        let question = format!("{verb}: {} {}?", approval.agent, approval.summary);
        let said = format!("{} {done}", approval.id);
        self.asked = Some(Asked { question, then: TopAction::Write { path, text: format!("{text}\n"), said } });
    }
}

#[cfg(test)]
pub mod tests;
