//! Telling those who keep a copy that it is old.

use parking_lot::Mutex;
use std::sync::{Arc, Weak};

/// What has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum News {
    /// The bytes of a file, or its length.
    Bytes,
    /// A name in a directory: gone, new, or leading elsewhere.
    Name(String),
}

/// Hears the bell of a node. Called by whoever made the change, with locks of its own held: it must only take note.
pub trait Listener: Send + Sync {
    fn heard(&self, news: &News);
}

/// Rung by a node when it changes. A listener that is gone is forgotten.
#[derive(Default)]
pub struct Bell {
    listeners: Mutex<Vec<Weak<dyn Listener>>>,
}

impl Bell {
    pub fn listen(&self, listener: &Arc<dyn Listener>) {
        let mut listeners = self.listeners.lock();
        listeners.retain(|it| it.strong_count() > 0);
        listeners.push(Arc::downgrade(listener));
    }

    pub fn ring(&self, news: &News) {
        let listeners = self.listeners.lock().clone();
        for listener in listeners.iter().filter_map(Weak::upgrade) {
            listener.heard(news);
        }
    }

    pub fn bytes(&self) {
        self.ring(&News::Bytes);
    }

    pub fn name(&self, name: &str) {
        self.ring(&News::Name(name.to_owned()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Ear(Mutex<Vec<News>>);

    impl Listener for Ear {
        fn heard(&self, news: &News) {
            self.0.lock().push(news.clone());
        }
    }

    #[test]
    fn all_who_are_there_hear_it() {
        let bell = Bell::default();
        let (one, two) = (Arc::new(Ear::default()), Arc::new(Ear::default()));
        bell.listen(&(one.clone() as Arc<dyn Listener>));
        bell.listen(&(two.clone() as Arc<dyn Listener>));
        bell.bytes();
        drop(two);
        bell.name("x");
        assert_eq!(*one.0.lock(), [News::Bytes, News::Name("x".to_owned())]);
    }
}
