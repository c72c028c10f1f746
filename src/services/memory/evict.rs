//! Which memories leave when the active ones cost too much. The rule alone; it knows no database.

/// An active memory, as the rule sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    pub id: i64,
    pub tokens: u64,
    /// When it was last used; larger is later.
    pub used: u64,
    pub pinned: bool,
    pub unevictable: bool,
}

impl Held {
    fn stays(&self) -> bool {
        self.pinned || self.unevictable
    }
}

/// Who leaves, in the order of leaving, so that the rest fits into `budget`.
///
/// The least recently used go first. One that would not fit even if it were alone with those that must stay goes before
/// all: it would have to leave anyway, and need not take the others along. What is pinned or unevictable never leaves,
/// even when the budget is exceeded by it.
pub fn leaving(held: &[Held], budget: u64) -> Vec<i64> {
    let sum = |all: &mut dyn Iterator<Item = &Held>| all.fold(0u64, |sum, one| sum.saturating_add(one.tokens));
    let mut total = sum(&mut held.iter());
    if total <= budget {
        return Vec::new();
    }
    let room = budget.saturating_sub(sum(&mut held.iter().filter(|one| one.stays())));
    let mut order: Vec<&Held> = held.iter().filter(|one| !one.stays()).collect();
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
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// `id:tokens`, least recently used first; `!` pinned, `^` unevictable.
    fn held(line: &str) -> Vec<Held> {
        let one = |(used, word): (usize, &str)| {
            let (id, tokens) = word.trim_end_matches(['!', '^']).split_once(':').unwrap();
            Held {
                id: id.parse().unwrap(),
                tokens: tokens.parse().unwrap(),
                used: used as u64,
                pinned: word.ends_with('!'),
                unevictable: word.ends_with('^'),
            }
        };
        line.split_whitespace().enumerate().map(one).collect()
    }

    #[test]
    fn the_rule() {
        let table: &[(&str, &str, u64, &[i64])] = &[
            ("nothing is held", "", 10, &[]),
            ("what fits stays", "1:5 2:5", 10, &[]),
            ("the least recently used leaves", "1:5 2:5 3:1", 10, &[1]),
            ("as many as needed", "1:2 2:2 3:9", 10, &[1, 2]),
            ("no more than needed", "1:8 2:2 3:2", 10, &[1]),
            ("a pin holds", "1:5! 2:5 3:5", 10, &[2]),
            ("the unevictable stays", "1:5^ 2:5! 3:5", 10, &[3]),
            ("even above the budget", "1:20^ 2:20!", 10, &[]),
            ("then all the others leave", "1:20^ 2:1 3:1", 10, &[2, 3]),
            ("a giant goes alone", "1:2 2:2 3:50", 10, &[3]),
            ("a giant beside what must stay", "1:6^ 2:2 3:5", 10, &[3]),
            ("giants, and then still too much", "1:4 2:4 3:50 4:4", 10, &[3, 1]),
            ("no budget at all", "1:1 2:1", 0, &[1, 2]),
            ("what costs nothing may stay", "1:0 2:11", 10, &[2]),
        ];
        for (name, line, budget, expected) in table {
            assert_eq!(leaving(&held(line), *budget), *expected, "{name}");
        }
    }

    #[test]
    fn equals_leave_in_the_order_of_their_making() {
        let one = |id| Held { id, tokens: 5, used: 7, pinned: false, unevictable: false };
        assert_eq!(leaving(&[one(2), one(1), one(3)], 10), [1]);
    }

    fn any_held() -> impl Strategy<Value = Vec<Held>> {
        let one = (0u64..50, 0u64..9, any::<bool>(), any::<bool>());
        proptest::collection::vec(one, 0..12).prop_map(|all| {
            let held = |(id, (tokens, used, pinned, unevictable))| Held { id, tokens, used, pinned, unevictable };
            (1i64..).zip(all).map(held).collect()
        })
    }

    proptest! {
        #[test]
        fn afterwards_it_fits_or_nothing_more_may_leave(held in any_held(), budget in 0u64..120) {
            let gone = leaving(&held, budget);
            prop_assert!(held.iter().all(|one| !one.stays() || !gone.contains(&one.id)));
            let left: Vec<_> = held.iter().filter(|one| !gone.contains(&one.id)).cloned().collect();
            let total: u64 = left.iter().map(|one| one.tokens).sum();
            prop_assert!(total <= budget || left.iter().all(Held::stays));
            prop_assert_eq!(leaving(&left, budget), Vec::<i64>::new());
        }
    }
}
