//! How far a wiki has been read. `wiki` counts; the status of the service shows it, and whoever needs all pages waits for it.

use parking_lot::{Condvar, Mutex};
use serde_json::{Value, json};

/// Called when all pages have been read, with how many were.
pub type Indexed = Box<dyn FnOnce(usize) + Send>;

#[derive(Default)]
pub struct Progress {
    now: Mutex<ProgressNow>,
    ended: Condvar,
}

#[derive(Default)]
struct ProgressNow {
    running: bool,
    pages: usize,
    /// The pages that had to be read since the wiki was opened, and those that were.
    changed: usize,
    done: usize,
    fault: Option<String>,
    told: Vec<Indexed>,
}

impl Progress {
    pub fn begin(&self, pages: usize, changed: usize) {
        let mut now = self.now.lock();
        (now.running, now.pages, now.changed, now.done) = (changed > 0, pages, changed, 0);
    }

    /// Notes how many pages there are.
    pub fn count(&self, pages: usize) {
        self.now.lock().pages = pages;
    }

    pub fn step(&self, done: usize) {
        self.now.lock().done += done;
    }

    /// Notes that the index could not be written: what it has is not all.
    pub fn fail(&self, error: &acheron_base::Error) {
        self.now.lock().fault = Some(error.to_string());
    }

    pub fn end(&self) {
        let mut now = self.now.lock();
        now.running = false;
        let (told, done) = (std::mem::take(&mut now.told), now.done);
        drop(now);
        self.ended.notify_all();
        told.into_iter().for_each(|told| told(done));
    }

    /// Blocks until all pages have been read.
    pub fn wait(&self) {
        let mut now = self.now.lock();
        self.ended.wait_while(&mut now, |now| now.running);
    }

    pub fn is_running(&self) -> bool {
        self.now.lock().running
    }

    /// Calls `told` at the end, if pages are being read.
    pub fn when_ended(&self, told: Indexed) {
        let mut now = self.now.lock();
        if now.running {
            now.told.push(told);
        }
    }

    pub fn shown(&self) -> Value {
        let now = self.now.lock();
        let state = if now.running { "indexing" } else { "ready" };
        let mut shown = json!({"index": state, "pages": now.pages, "to_read": now.changed, "read": now.done});
        if let Some(fault) = &now.fault {
            shown["error"] = json!(fault);
        }
        shown
    }
}
