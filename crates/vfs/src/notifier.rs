//! Notifications about changed nodes, for servers that cache them. Uses nothing of the tree.

use std::sync::{Arc, Weak};

use parking_lot::Mutex;

/// The part of a node that changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChangeKind {
    /// The bytes of a file, or its length.
    Bytes,
    /// A name in a directory: removed, added, or replaced.
    Name(String),
}

/// Receives the notifications of a node.
pub trait Listener: Send + Sync {
    /// The node has changed. The thread that made the change calls this and may hold locks, so it must only record the
    /// change and return.
    fn changed(&self, change: &ChangeKind);
}

/// Sends the changes of a node to its listeners. It holds them weakly: a listener that is dropped is forgotten.
#[derive(Default)]
pub struct ChangeNotifier {
    listeners: Mutex<Vec<Weak<dyn Listener>>>,
}

impl ChangeNotifier {
    /// Adds a listener, which the caller keeps alive.
    pub fn listen(&self, listener: &Arc<dyn Listener>) {
        let mut listeners = self.listeners.lock();
        listeners.retain(|it| it.strong_count() > 0);
        listeners.push(Arc::downgrade(listener));
    }

    /// Sends `change` to every listener.
    pub fn notify(&self, change: &ChangeKind) {
        let listeners = self.listeners.lock().clone();
        for listener in listeners.iter().filter_map(Weak::upgrade) {
            listener.changed(change);
        }
    }

    /// Sends [`ChangeKind::Bytes`].
    pub fn bytes(&self) {
        self.notify(&ChangeKind::Bytes);
    }

    /// Sends [`ChangeKind::Name`].
    pub fn name(&self, name: &str) {
        self.notify(&ChangeKind::Name(name.to_owned()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Recorder(Mutex<Vec<ChangeKind>>);

    impl Listener for Recorder {
        fn changed(&self, change: &ChangeKind) {
            self.0.lock().push(change.clone());
        }
    }

    #[test]
    fn every_living_listener_is_notified() {
        let notifier = ChangeNotifier::default();
        let (one, two) = (Arc::new(Recorder::default()), Arc::new(Recorder::default()));
        notifier.listen(&(one.clone() as Arc<dyn Listener>));
        notifier.listen(&(two.clone() as Arc<dyn Listener>));
        notifier.bytes();
        drop(two);
        notifier.name("x");
        assert_eq!(*one.0.lock(), [ChangeKind::Bytes, ChangeKind::Name("x".to_owned())]);
    }
}
