//! The walk along links: level by level, each symbol once, so many levels and so many symbols.
//!
//! The walk does not fetch. It says what it wants next and is handed what was found; so it is the same for every store
//! and can be tested with a list.

use std::collections::HashSet;

use super::symbol::Symbol;

/// A walk under way.
pub struct Walk {
    wanted: Vec<String>,
    seen: HashSet<String>,
    levels: usize,
    room: usize,
    walked: Walked,
}

/// The result of a walk.
#[derive(Debug, Default, PartialEq)]
pub struct Walked {
    /// In the order met, without the roots.
    pub symbols: Vec<Symbol>,
    /// Links that lead to nothing.
    pub dangling: Vec<String>,
    /// Whether there was more than there was room for.
    pub cut: bool,
}

impl Walk {
    /// Begins at `roots`: depth 1 is what they link to.
    pub fn new(roots: &[Symbol], depth: usize, room: usize) -> Walk {
        let seen = roots.iter().map(|root| root.id.clone()).collect();
        let mut walk = Walk { wanted: vec![], seen, levels: depth, room, walked: Walked::default() };
        walk.look(roots);
        walk
    }

    /// The ids to fetch next; empty when the walk is over.
    pub fn wanted(&self) -> &[String] {
        &self.wanted
    }

    /// Takes what was found for [`Walk::wanted`], in its order.
    pub fn found(&mut self, found: Vec<Option<Symbol>>) {
        let wanted = std::mem::take(&mut self.wanted);
        let mut level = Vec::new();
        for (id, symbol) in wanted.into_iter().zip(found) {
            match symbol {
                Some(symbol) => level.push(symbol),
                None => self.walked.dangling.push(id),
            }
        }
        self.look(&level);
        self.walked.symbols.extend(level);
    }

    pub fn end(self) -> Walked {
        self.walked
    }

    fn look(&mut self, from: &[Symbol]) {
        if self.levels == 0 {
            return;
        }
        self.levels -= 1;
        for link in from.iter().flat_map(Symbol::links) {
            if self.seen.contains(link) {
                continue;
            }
            if self.room == 0 {
                self.walked.cut = true;
                return;
            }
            self.room -= 1;
            self.seen.insert(link.to_owned());
            self.wanted.push(link.to_owned());
        }
    }
}

#[cfg(test)]
mod tests;
