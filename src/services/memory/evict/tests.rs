use proptest::prelude::*;

use super::*;

/// `id:tokens`, least recently used first; `!` pinned, `^` unevictable.
fn held(line: &str) -> Vec<ActiveMemory> {
    let one = |(used, word): (usize, &str)| {
        let (id, tokens) = word.trim_end_matches(['!', '^']).split_once(':').unwrap();
        ActiveMemory {
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
    let one = |id| ActiveMemory { id, tokens: 5, used: 7, pinned: false, unevictable: false };
    assert_eq!(leaving(&[one(2), one(1), one(3)], 10), [1]);
}

fn any_held() -> impl Strategy<Value = Vec<ActiveMemory>> {
    let one = (0u64..50, 0u64..9, any::<bool>(), any::<bool>());
    proptest::collection::vec(one, 0..12).prop_map(|all| {
        let held = |(id, (tokens, used, pinned, unevictable))| ActiveMemory { id, tokens, used, pinned, unevictable };
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
        prop_assert!(total <= budget || left.iter().all(ActiveMemory::stays));
        prop_assert_eq!(leaving(&left, budget), Vec::<i64>::new());
    }
}
