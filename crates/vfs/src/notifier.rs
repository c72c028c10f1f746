//! Telling those who keep a copy that it is old.

use parking_lot::Mutex;
use std::sync::{Arc, Weak};

/// What has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChangeKind {
    /// The bytes of a file, or its length.
    Bytes,
    /// A name in a directory: gone, new, or leading elsewhere.
    Name(String),
}

/// Hears the bell of a node. Called by whoever made the change, with locks of its own held: it must only take note.
pub trait Listener: Send + Sync {
    fn heard(&self, news: &ChangeKind);
}

/// Rung by a node when it changes. A listener that is gone is forgotten.
#[derive(Default)]
pub struct ChangeNotifier {
    listeners: Mutex<Vec<Weak<dyn Listener>>>,
}

impl ChangeNotifier {
    pub fn listen(&self, listener: &Arc<dyn Listener>) {
        let mut listeners = self.listeners.lock();
        listeners.retain(|it| it.strong_count() > 0);
        listeners.push(Arc::downgrade(listener));
    }

    pub fn notify(&self, news: &ChangeKind) {
        let listeners = self.listeners.lock().clone();
        for listener in listeners.iter().filter_map(Weak::upgrade) {
            listener.heard(news);
        }
    }

    pub fn bytes(&self) {
        self.notify(&ChangeKind::Bytes);
    }

    pub fn name(&self, name: &str) {
        self.notify(&ChangeKind::Name(name.to_owned()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Ear(Mutex<Vec<ChangeKind>>);

    impl Listener for Ear {
        fn heard(&self, news: &ChangeKind) {
            self.0.lock().push(news.clone());
        }
    }

    #[test]
    fn all_who_are_there_hear_it() {
        let notifier = ChangeNotifier::default();
        let (one, two) = (Arc::new(Ear::default()), Arc::new(Ear::default()));
        notifier.listen(&(one.clone() as Arc<dyn Listener>));
        notifier.listen(&(two.clone() as Arc<dyn Listener>));
        notifier.bytes();
        drop(two);
        notifier.name("x");
        assert_eq!(*one.0.lock(), [ChangeKind::Bytes, ChangeKind::Name("x".to_owned())]);
    }
}
