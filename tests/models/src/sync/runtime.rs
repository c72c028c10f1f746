//! `tokio::runtime::Handle`: each task is a thread of loom.

use std::sync::Arc;

use super::thread::JoinHandle;

#[derive(Clone, Default)]
pub struct Runtime(Arc<std::sync::Mutex<Vec<JoinHandle<()>>>>);

impl Runtime {
    pub fn spawn(&self, task: impl Future<Output = ()> + 'static) {
        let task = loom::thread::spawn(move || loom::future::block_on(task));
        self.0.lock().expect("not poisoned").push(task);
    }

    /// Waits until all tasks have ended, and those that they began.
    pub fn join(&self) {
        loop {
            let Some(task) = self.0.lock().expect("not poisoned").pop() else { return };
            task.join().expect("a task panicked");
        }
    }
}
