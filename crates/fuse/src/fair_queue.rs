//! A queue that many callers share fairly: items are taken in turn from one caller after another, and those of one caller
//! in their order. So what a caller waits for depends on the number of callers, never on how much another one has queued.
//! The session and the pool use it; it knows neither callers nor requests.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;

/// Items of `T`, by their caller `K`.
///
/// A caller that comes after a pause is served before those that are always there, once: then it takes turns with them
/// until its turn comes and it has nothing. So a caller with one request at a time waits for the one that is being served,
/// and nobody can use pauses to keep others out.
pub struct FairQueue<K, T> {
    queues: HashMap<K, VecDeque<T>>,
    /// Callers that have come after a pause.
    fresh: VecDeque<K>,
    /// The other callers, in the order in which their turns come; some may have nothing left.
    turns: VecDeque<K>,
    length: usize,
}

impl<K, T> Default for FairQueue<K, T> {
    fn default() -> Self {
        FairQueue { queues: HashMap::new(), fresh: VecDeque::new(), turns: VecDeque::new(), length: 0 }
    }
}

impl<K: Clone + Eq + Hash, T> FairQueue<K, T> {
    pub fn push(&mut self, caller: K, item: T) {
        let queue = self.queues.entry(caller).or_insert_with_key(|caller| {
            self.fresh.push_back(caller.clone());
            VecDeque::new()
        });
        queue.push_back(item);
        self.length += 1;
    }

    /// The item whose turn it is, and its caller.
    pub fn pop(&mut self) -> Option<(K, T)> {
        self.pop_if(|_| true)
    }

    /// The item whose turn it is among the callers that `may` go on.
    pub fn pop_if(&mut self, may: impl Fn(&K) -> bool) -> Option<(K, T)> {
        if self.length == 0 {
            return None;
        }
        if let Some(at) = self.fresh.iter().position(&may) {
            return self.fresh.remove(at).and_then(|caller| self.serve(caller));
        }
        let mut at = 0;
        while let Some(caller) = self.turns.get(at) {
            match self.queues.get(caller).is_none_or(VecDeque::is_empty) {
                // Its turn has come and it has nothing: what it brings later is fresh.
                true => drop(self.turns.remove(at).and_then(|caller| self.queues.remove(&caller))),
                false if may(caller) => return self.turns.remove(at).and_then(|caller| self.serve(caller)),
                false => at += 1,
            }
        }
        None
    }

    /// Takes an item of `caller`, whose next turn comes after those of all others.
    fn serve(&mut self, caller: K) -> Option<(K, T)> {
        let item = self.queues.get_mut(&caller)?.pop_front()?;
        self.length -= 1;
        self.turns.push_back(caller.clone());
        Some((caller, item))
    }

    pub fn len(&self) -> usize {
        self.length
    }

    pub fn is_empty(&self) -> bool {
        self.length == 0
    }
}

#[cfg(test)]
mod tests;
