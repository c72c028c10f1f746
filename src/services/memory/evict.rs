//! Which memories leave when the active ones cost too much. The rule alone; it knows no database.

/// An active memory, as the rule sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActiveMemory {
    pub id: i64,
    pub tokens: u64,
    /// When it was last used; larger is later.
    pub used: u64,
    pub pinned: bool,
    pub unevictable: bool,
}

impl ActiveMemory {
    fn stays(&self) -> bool {
        self.pinned || self.unevictable
    }
}

/// The memories to evict, in order, so that the rest fits into `budget`.
///
/// The least recently used go first. One that would not fit even if it were alone with those that must stay goes before
/// all: it would have to leave anyway, and need not take the others along. What is pinned or unevictable never leaves,
/// even when the budget is exceeded by it.
pub fn leaving(held: &[ActiveMemory], budget: u64) -> Vec<i64> {
    let sum = |all: &mut dyn Iterator<Item = &ActiveMemory>| all.fold(0u64, |sum, one| sum.saturating_add(one.tokens));
    let mut total = sum(&mut held.iter());
    if total <= budget {
        return Vec::new();
    }
    let room = budget.saturating_sub(sum(&mut held.iter().filter(|one| one.stays())));
    let mut order: Vec<&ActiveMemory> = held.iter().filter(|one| !one.stays()).collect();
    order.sort_by_key(|one| (one.tokens <= room, one.used, one.id));
    let mut gone = Vec::new();
    for one in order {
        if total <= budget {
            break;
        }
        total = total.saturating_sub(one.tokens);
        gone.push(one.id);
    }
    gone
}

#[cfg(test)]
mod tests;
