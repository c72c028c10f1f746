//! No caller starves, and each is served in its order.

use proptest::prelude::*;

use super::*;

#[test]
fn callers_take_turns() {
    let mut queue = FairQueue::default();
    (0..400).for_each(|number| queue.push("many", number));
    queue.push("one", 1000);
    queue.push("one", 1001);
    let first: Vec<_> = (0..5).filter_map(|_| queue.pop()).collect();
    assert_eq!(first, [("many", 0), ("one", 1000), ("many", 1), ("one", 1001), ("many", 2)]);
    assert_eq!(queue.len(), 397);
}

#[test]
fn a_caller_that_comes_later_is_next() {
    let mut queue = FairQueue::default();
    (0..400).for_each(|number| queue.push("many", number));
    assert_eq!(queue.pop(), Some(("many", 0)));
    queue.push("one", 1000);
    assert_eq!(queue.pop(), Some(("one", 1000)));
    queue.push("one", 1001);
    assert_eq!([queue.pop(), queue.pop(), queue.pop()].map(Option::unwrap), [("many", 1), ("one", 1001), ("many", 2)]);
}

#[test]
fn a_caller_that_may_not_go_on_keeps_its_items_and_delays_nobody() {
    let mut queue = FairQueue::default();
    queue.push("held", 1);
    queue.push("free", 2);
    assert_eq!(queue.pop_if(|caller| *caller != "held"), Some(("free", 2)));
    assert_eq!(queue.pop_if(|caller| *caller != "held"), None);
    assert_eq!((queue.pop(), queue.is_empty()), (Some(("held", 1)), true));
}

#[derive(Clone, Debug)]
enum Step {
    Push(u8),
    Pop,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec(prop_oneof![(0..5_u8).prop_map(Step::Push), Just(Step::Pop)], 0..300)
}

proptest! {
    /// While a caller waits, no other has more than two turns: one after a pause and one in order. Nothing is lost, doubled
    /// or out of its order.
    #[test]
    fn no_caller_starves_and_each_is_served_in_its_order(steps in steps()) {
        let mut queue = FairQueue::default();
        let (mut pushed, mut popped) = (vec![0_u32; 5], vec![0_u32; 5]);
        // Turns that others had since a caller with items was last served.
        let mut waited = vec![vec![0_u32; 5]; 5];
        for step in steps.into_iter().chain(std::iter::repeat_n(Step::Pop, 300)) {
            match step {
                Step::Push(caller) => {
                    queue.push(caller, pushed[usize::from(caller)]);
                    pushed[usize::from(caller)] += 1;
                }
                Step::Pop => {
                    let Some((caller, item)) = queue.pop() else {
                        prop_assert_eq!(&pushed, &popped);
                        continue;
                    };
                    let caller = usize::from(caller);
                    prop_assert_eq!(item, popped[caller]);
                    popped[caller] += 1;
                    for other in 0..5 {
                        match other != caller && pushed[other] > popped[other] {
                            true => waited[other][caller] += 1,
                            false => waited[other].fill(0),
                        }
                        prop_assert!(waited[other].iter().all(|turns| *turns <= 2), "{:?}", waited);
                    }
                }
            }
        }
        prop_assert_eq!(queue.len(), 0);
    }
}
