use proptest::prelude::*;

use super::*;

fn leased(attempt: u32, token: &str, until_ms: u64) -> ItemLife {
    ItemLife { state: ItemState::Leased { token: token.to_owned(), until_ms }, attempt, max_attempts: 3 }
}

fn state(life: &ItemLife, event: &ItemEvent, now_ms: u64) -> Result<ItemState, &'static str> {
    match next(life, event, now_ms) {
        Ok(NextLife::Is(life)) => Ok(life.state),
        Ok(NextLife::Gone) => Err("gone"),
        Err(error) => Err(error.code.name()),
    }
}

#[test]
fn an_item_comes_back_after_a_failure_and_dies_after_the_last_attempt() {
    let fail = |retry_in_ms| ItemEvent::Fail { token: "t".to_owned(), retry_in_ms, dead: false };
    assert_eq!(state(&leased(1, "t", 9), &fail(None), 100), Ok(ItemState::Delayed { until_ms: 1100 }));
    assert_eq!(state(&leased(2, "t", 9), &fail(None), 100), Ok(ItemState::Delayed { until_ms: 2100 }));
    assert_eq!(state(&leased(2, "t", 9), &fail(Some(7)), 100), Ok(ItemState::Delayed { until_ms: 107 }));
    assert_eq!(state(&leased(3, "t", 9), &fail(None), 100), Ok(ItemState::Dead));
    let dead = ItemEvent::Fail { token: "t".to_owned(), retry_in_ms: None, dead: true };
    assert_eq!(state(&leased(1, "t", 9), &dead, 100), Ok(ItemState::Dead));
    assert_eq!((pause_ms(0), pause_ms(1), pause_ms(9), pause_ms(u32::MAX)), (1000, 1000, 256_000, 300_000));
}

#[test]
fn a_lease_whose_time_is_up_goes_to_somebody_else() {
    assert_eq!(state(&leased(1, "t", 9), &ItemEvent::Tick, 8), Ok(leased(1, "t", 9).state));
    assert_eq!(state(&leased(1, "t", 9), &ItemEvent::Tick, 9), Ok(ItemState::Ready));
    assert_eq!(state(&leased(3, "t", 9), &ItemEvent::Tick, 9), Ok(ItemState::Dead));
}

#[test]
fn only_the_lease_in_force_ends_or_extends_an_item() {
    let done = ItemEvent::Done { token: "t".to_owned() };
    assert_eq!(state(&leased(1, "t", 9), &done, 5), Err("gone"));
    assert_eq!(state(&leased(1, "t", 9), &done, 50), Err("gone"), "late, and nobody else has it");
    assert_eq!(state(&leased(2, "other", 9), &done, 5), Err("fenced"));
    assert_eq!(state(&ItemLife::new(3, None, 0), &done, 5), Err("fenced"));
    let extend = ItemEvent::Extend { token: "t".to_owned(), lease_ms: 100 };
    assert_eq!(state(&leased(1, "t", 9), &extend, 5), Ok(leased(1, "t", 105).state));
    assert_eq!(state(&leased(1, "other", 9), &extend, 5), Err("fenced"));
}

#[test]
fn what_is_dead_is_retried_or_discarded_and_nothing_else_is() {
    let dead = ItemLife { state: ItemState::Dead, attempt: 3, max_attempts: 3 };
    let again = next(&dead, &ItemEvent::Retry, 0).unwrap();
    assert_eq!(again, NextLife::Is(ItemLife { state: ItemState::Ready, attempt: 0, max_attempts: 3 }));
    assert_eq!(state(&dead, &ItemEvent::Discard, 0), Err("gone"));
    assert_eq!(state(&leased(1, "t", 9), &ItemEvent::Discard, 0), Err("conflict"));
    assert_eq!(state(&leased(1, "t", 9), &ItemEvent::Retry, 0), Err("conflict"));
}

#[derive(Clone, Debug)]
enum Step {
    /// The clock moves, also backwards.
    Clock(i64),
    Tick,
    Take(u64),
    /// One of the leases that were ever given.
    Done(usize),
    Fail(usize, Option<u64>),
    Extend(usize, u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (-50_000i64..100_000).prop_map(Step::Clock),
        Just(Step::Tick),
        (1u64..60_000).prop_map(Step::Take),
        (0usize..8).prop_map(Step::Done),
        ((0usize..8), prop::option::of(0u64..10_000)).prop_map(|(lease, pause)| Step::Fail(lease, pause)),
        ((0usize..8), 1u64..60_000).prop_map(|(lease, ms)| Step::Extend(lease, ms)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// However workers, failures and a clock that jumps are mixed: at most one lease is in force, an item ends once and by the
    /// lease in force, is never taken more often than allowed, and is never lost.
    #[test]
    fn one_lease_is_in_force_and_an_item_ends_once(steps in prop::collection::vec(step(), 0..200), max in 1u32..5) {
        let (mut life, mut now, mut given) = (Some(ItemLife::new(max, Some(500), 0)), 0u64, Vec::<String>::new());
        let mut in_force: Option<String> = None;
        for one in steps {
            let Some(item) = life.clone() else { break };
            let token = |at: usize| given.get(at).cloned().unwrap_or_default();
            let (event, named) = match &one {
                Step::Clock(by) => {
                    now = now.saturating_add_signed(*by);
                    continue;
                }
                Step::Tick => (ItemEvent::Tick, None),
                Step::Take(lease_ms) => {
                    given.push(format!("lease-{}", given.len()));
                    (ItemEvent::Take { token: given.last().unwrap().clone(), lease_ms: *lease_ms }, None)
                }
                Step::Done(at) => (ItemEvent::Done { token: token(*at) }, Some(token(*at))),
                Step::Fail(at, retry_in_ms) => {
                    (ItemEvent::Fail { token: token(*at), retry_in_ms: *retry_in_ms, dead: false }, Some(token(*at)))
                }
                Step::Extend(at, lease_ms) => (ItemEvent::Extend { token: token(*at), lease_ms: *lease_ms }, Some(token(*at))),
            };
            let outcome = next(&item, &event, now);
            if let Some(named) = named {
                prop_assert_eq!(outcome.is_ok(), in_force == Some(named), "{:?} of {:?}", one, item);
            }
            match outcome {
                Ok(NextLife::Gone) => {
                    prop_assert!(matches!(one, Step::Done(_)), "lost by {:?}", one);
                    life = None;
                }
                Ok(NextLife::Is(after)) => {
                    prop_assert!(after.attempt <= after.max_attempts && after.attempt >= item.attempt);
                    in_force = match &after.state {
                        ItemState::Leased { token, .. } => Some(token.clone()),
                        _ => None,
                    };
                    prop_assert_eq!(after.attempt - item.attempt, u32::from(matches!(one, Step::Take(_))));
                    prop_assert!(after.state != ItemState::Dead || after.attempt == after.max_attempts);
                    life = Some(after);
                }
                Err(_) => prop_assert!(!matches!(one, Step::Tick)),
            }
        }
    }
}
