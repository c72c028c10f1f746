//! `names/<queue>/{status.json,dead/<id>.json}`. Everything comes from the database when it is asked for, off the thread that
//! all callers share.

use std::sync::Arc;

use super::Queues;
use super::backend::{Queue, QueueStatus};
use super::sqlite;
use acheron_base::Error;
use acheron_vfs::{Answer, ComputedFile, Dir, Listing, NameQuery, Node, pretty};

/// The files beside those of every service.
pub fn listed(queues: &Arc<Queues>) -> Vec<(String, Node)> {
    vec![("names".to_owned(), Node::dir(NamesDir(queues.clone())))]
}

struct NamesDir(Arc<Queues>);

impl NamesDir {
    fn node(&self, queue: &str) -> Node {
        let (queues, name) = (self.0.clone(), queue.to_owned());
        let status = ComputedFile::fetched(move |_| {
            let (queues, name) = (queues.clone(), name.clone());
            Answer::soon(async move {
                let now_ms = queues.clock.now_ms();
                let status = match queues.far.has(&name) {
                    true => {
                        let asked = name.clone();
                        let found = queues.far.ask(move |far| async move { far.status(&asked, now_ms).await }).await?;
                        found.or_else(|| Some(QueueStatus { queue: name.clone(), ..QueueStatus::default() }))
                    }
                    false => queues.backend.status(&name, now_ms).await?,
                };
                status.map(|status| pretty(&status)).ok_or_else(|| Error::not_found("the queue is gone"))
            })
        });
        let dead = DeadDir { queues: self.0.clone(), queue: queue.to_owned() };
        Node::dir(Listing::default().file("status.json", status).dir("dead", dead))
    }
}

impl Dir for NamesDir {
    fn lookup(&self, name: &str) -> Option<Node> {
        let is_there =
            self.0.far.has(name) || self.0.backend.store().look(|conn| sqlite::has(conn, name)).unwrap_or(false);
        is_there.then(|| self.node(name))
    }

    fn list(&self) -> Vec<(String, Node)> {
        let mut names = self.0.backend.store().look(sqlite::names).unwrap_or_default();
        names.extend(self.0.far.names());
        names.sort();
        names.dedup();
        names.into_iter().map(|name| (name.clone(), self.node(&name))).collect()
    }

    fn is_quick(&self, _query: NameQuery) -> bool {
        false
    }
}

/// The items of a queue that were tried too often.
struct DeadDir {
    queues: Arc<Queues>,
    queue: String,
}

impl DeadDir {
    fn node(&self, id: &str) -> Node {
        let (queues, queue, id) = (self.queues.clone(), self.queue.clone(), id.to_owned());
        Node::file(ComputedFile::fetched(move |_| {
            let (queues, queue, id) = (queues.clone(), queue.clone(), id.clone());
            Answer::soon(async move {
                let found = match queues.far.has(&queue) {
                    true => queues.far.ask(|far| async move { far.dead_one(&queue, &id).await }).await?,
                    false => queues.backend.store().read(move |conn| sqlite::dead_item(conn, &queue, &id)).await?,
                };
                found.map(|item| pretty(&item)).ok_or_else(|| Error::not_found("the item is not dead any more"))
            })
        }))
    }
}

impl DeadDir {
    /// The ids; for a queue of all hosts, as they were last seen.
    fn ids(&self, most: usize) -> Vec<String> {
        if self.queues.far.has(&self.queue) {
            let far = self.queues.far.current();
            return far.map(|far| far.known_dead(&self.queue, most)).unwrap_or_default();
        }
        let ids = self.queues.backend.store().look(|conn| sqlite::dead_ids(conn, &self.queue, most));
        ids.unwrap_or_default()
    }
}

impl Dir for DeadDir {
    fn lookup(&self, name: &str) -> Option<Node> {
        let id = name.strip_suffix(".json")?;
        if self.queues.far.has(&self.queue) {
            return self.ids(usize::MAX).iter().any(|dead| dead == id).then(|| self.node(id));
        }
        let found = self.queues.backend.store().look(|conn| sqlite::dead_item(conn, &self.queue, id));
        found.ok().flatten().map(|_| self.node(id))
    }

    fn list(&self) -> Vec<(String, Node)> {
        self.first(usize::MAX)
    }

    fn first(&self, most: usize) -> Vec<(String, Node)> {
        let mut nodes: Vec<_> = self.ids(most).iter().map(|id| (format!("{id}.json"), self.node(id))).collect();
        nodes.sort_by(|one, other| one.0.cmp(&other.0));
        nodes
    }

    fn is_quick(&self, _query: NameQuery) -> bool {
        false
    }
}
