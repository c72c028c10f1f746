//! The files of a mailbox: `inbox/<id>.json`, and `next.json`, which waits and is not listed.
//!
//! Names and bodies come from the database when they are asked for, off the thread that all callers share: an inbox may have
//! a hundred thousand messages.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;

use super::address::Address;
use super::backend::Mailbox;
use super::post::Post;
use super::sqlite;
use acheron_base::Error;
use acheron_vfs::{Answer, ComputedFile, Dir, NameQuery, Node, pretty, waiting};

/// The files beside those of every service.
pub fn listed(post: &Arc<Post>, inbox: &Address) -> Vec<(String, Node)> {
    let dir = InboxDir { post: post.clone(), inbox: inbox.clone() };
    let mut files = vec![("inbox".to_owned(), Node::dir(dir))];
    if *inbox == Address::Operator {
        files.push(("receipts.ndjson".to_owned(), Node::file(post.receipts.clone())));
    }
    files
}

/// The files that wait.
pub fn unlisted(post: &Arc<Post>, inbox: &Address) -> Vec<(String, Node)> {
    let (post, inbox) = (post.clone(), inbox.clone());
    vec![("next.json".to_owned(), Node::file(waiting(move |_| next(&post, &inbox))))]
}

/// The oldest message as soon as there is one. It stays until it is acknowledged.
fn next(post: &Arc<Post>, inbox: &Address) -> Answer<Bytes> {
    let (post, inbox, signal) = (post.clone(), inbox.clone(), post.signal(inbox));
    let is_there = signal.has_messages();
    let next = async move {
        let mut changes = signal.listen();
        loop {
            changes.borrow_and_update();
            if let Some(mail) = post.oldest(&inbox).await? {
                return Ok(pretty(&mail));
            }
            if changes.changed().await.is_err() {
                return Err(Error::unavailable("the mailbox is closed"));
            }
        }
    };
    if is_there { Answer::soon(next) } else { Answer::later(next) }
}

struct InboxDir {
    post: Arc<Post>,
    inbox: Address,
}

impl InboxDir {
    fn node(&self, id: &str, at_ms: u64) -> Node {
        let (post, inbox, id) = (self.post.clone(), self.inbox.clone(), id.to_owned());
        let file = ComputedFile::fetched(move |_| {
            let (post, inbox, id) = (post.clone(), inbox.clone(), id.clone());
            Answer::soon(async move {
                let mail = post.mailbox.get(&inbox, &id).await?;
                mail.map(|mail| pretty(&mail)).ok_or_else(|| Error::not_found("the message was acknowledged"))
            })
        });
        Node::file(file.modified_at(move || time(at_ms)))
    }
}

impl Dir for InboxDir {
    fn lookup(&self, name: &str) -> Option<Node> {
        let id = name.strip_suffix(".json")?;
        let found = self.post.mailbox.store().look(|conn| sqlite::time_of(conn, &self.inbox, id));
        found.ok().flatten().map(|at_ms| self.node(id, at_ms))
    }

    fn list(&self) -> Vec<(String, Node)> {
        self.first(usize::MAX)
    }

    fn first(&self, most: usize) -> Vec<(String, Node)> {
        let names = self.post.mailbox.store().look(|conn| sqlite::names(conn, &self.inbox, most)).unwrap_or_default();
        names.into_iter().map(|(id, at_ms)| (format!("{id}.json"), self.node(&id, at_ms))).collect()
    }

    fn is_quick(&self, _query: NameQuery) -> bool {
        false
    }
}

fn time(ms: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(ms)
}
