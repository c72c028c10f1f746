//! A queue that many callers share fairly: items are taken in turn from one caller after another, and those of one caller
//! in their order. So what a caller waits for depends on the number of callers, never on how much another one has queued.
//! The session and the pool use it; it knows neither callers nor requests.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;

/// Items of `T`, by their caller `K`.
pub struct FairQueue<K, T> {
    queues: HashMap<K, VecDeque<T>>,
    /// The callers with items, in the order in which their turns come.
    turns: VecDeque<K>,
    length: usize,
}

impl<K, T> Default for FairQueue<K, T> {
    fn default() -> Self {
        FairQueue { queues: HashMap::new(), turns: VecDeque::new(), length: 0 }
    }
}

impl<K: Clone + Eq + Hash, T> FairQueue<K, T> {
    pub fn push(&mut self, caller: K, item: T) {
        let queue = self.queues.entry(caller.clone()).or_default();
        if queue.is_empty() {
            self.turns.push_back(caller);
        }
        queue.push_back(item);
        self.length += 1;
    }

    /// The item whose turn it is, and its caller.
    pub fn pop(&mut self) -> Option<(K, T)> {
        self.pop_if(|_| true)
    }

    /// The item whose turn it is among the callers that `may` go on.
    pub fn pop_if(&mut self, may: impl Fn(&K) -> bool) -> Option<(K, T)> {
        let at = self.turns.iter().position(may)?;
        let caller = self.turns.remove(at)?;
        let queue = self.queues.get_mut(&caller)?;
        let item = queue.pop_front()?;
        self.length -= 1;
        match queue.is_empty() {
            true => drop(self.queues.remove(&caller)),
            false => self.turns.push_back(caller.clone()),
        }
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
