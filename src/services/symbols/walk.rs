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

/// What a walk came by.
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
mod tests {
    use super::*;
    use serde_json::json;

    fn symbol(id: &str, links: &str) -> Symbol {
        let (patterns, lnk) = links.split_once('+').unwrap_or((links, ""));
        let list = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        Symbol::read(&json!({"id": id, "linked_patterns": list(patterns), "lnk": list(lnk)})).unwrap()
    }

    fn check(links: &[(&str, &str)], depth: usize, room: usize, expected: &str) {
        let all: Vec<Symbol> = links.iter().map(|(id, links)| symbol(id, links)).collect();
        let mut walk = Walk::new(&all[..1], depth, room);
        while !walk.wanted().is_empty() {
            let found = walk.wanted().iter().map(|id| all.iter().find(|symbol| symbol.id == *id).cloned()).collect();
            walk.found(found);
        }
        let walked = walk.end();
        let ids: Vec<&str> = walked.symbols.iter().map(|symbol| symbol.id.as_str()).collect();
        let cut = if walked.cut { ", cut" } else { "" };
        assert_eq!(format!("{}; dangling {}{cut}", ids.join(" "), walked.dangling.join(" ")), expected);
    }

    #[test]
    fn depth_counts_links_from_the_root() {
        let chain = [("a", "b"), ("b", "c"), ("c", "d"), ("d", "")];
        check(&chain, 0, 9, "; dangling ");
        check(&chain, 1, 9, "b; dangling ");
        check(&chain, 2, 9, "b c; dangling ");
        check(&chain, 9, 9, "b c d; dangling ");
    }

    #[test]
    fn a_circle_is_walked_once() {
        check(&[("a", "b a"), ("b", "c"), ("c", "a b")], 50, 99, "b c; dangling ");
    }

    #[test]
    fn both_spellings_are_walked_and_dangling_links_are_named() {
        check(&[("a", "b + c gone"), ("b", "lost"), ("c", "gone")], 3, 99, "b c; dangling gone lost");
    }

    #[test]
    fn a_walk_stops_when_there_is_no_room() {
        check(&[("a", "b c d"), ("b", ""), ("c", ""), ("d", "")], 3, 2, "b c; dangling , cut");
    }
}
