//! What every backend of queues has to do, written against the trait. A backend runs all of it by one call of [`holds`].

use std::collections::BTreeMap;

use serde_json::json;

use super::backend::{LeasedItem, NewItem, Queue, QueueStatus, TakeRequest, Taken};
use super::lease::ItemEvent;
use super::names::token;
use acheron_base::{Code, Result};

pub fn item(queue: &str, id: &str) -> NewItem {
    let (queue, by) = (queue.to_owned(), "agent ada".to_owned());
    NewItem {
        queue,
        id: id.to_owned(),
        body: json!(id),
        priority: 0,
        not_before_ms: None,
        max_attempts: 3,
        by,
        at_ms: 0,
    }
}

pub fn take(queue: &str, lease: &str, at_ms: u64) -> TakeRequest {
    let by = "agent bob".to_owned();
    TakeRequest { queue: queue.to_owned(), token: token(queue, lease), lease_ms: 100, by, at_ms }
}

async fn leased(queue: &dyn Queue, name: &str, lease: &str, at_ms: u64) -> Option<LeasedItem> {
    match queue.take(take(name, lease, at_ms)).await.unwrap() {
        Taken::Leased { item, .. } => Some(item),
        Taken::Empty { .. } => None,
    }
}

async fn id(queue: &dyn Queue, name: &str, lease: &str, at_ms: u64) -> Option<String> {
    leased(queue, name, lease, at_ms).await.map(|item| item.id)
}

pub fn done(name: &str, lease: &str) -> ItemEvent {
    ItemEvent::Done { token: token(name, lease) }
}

fn fail(name: &str, lease: &str) -> ItemEvent {
    ItemEvent::Fail { token: token(name, lease), retry_in_ms: Some(50), dead: false }
}

fn code(outcome: Result<()>) -> Option<Code> {
    outcome.err().map(|error| error.code)
}

/// All of the suite, on an empty store.
pub async fn holds(queue: &dyn Queue) {
    items_come_by_priority_and_age(queue).await;
    an_item_is_leased_to_one_at_a_time(queue).await;
    a_failure_is_retried_until_the_item_is_dead(queue).await;
    an_item_is_not_taken_before_its_time(queue).await;
    the_same_id_is_the_same_item(queue).await;
    ids_are_forgotten_when_they_are_old(queue).await;
}

async fn items_come_by_priority_and_age(queue: &dyn Queue) {
    for (id, priority) in [("low", -1), ("one", 0), ("two", 0), ("high", 9)] {
        assert!(queue.put(NewItem { priority, ..item("order", id) }).await.unwrap());
    }
    let mut order = Vec::new();
    while let Some(id) = id(queue, "order", &format!("o{}", order.len()), 1).await {
        order.push(id);
    }
    assert_eq!(order, ["high", "one", "two", "low"]);
    assert!(queue.queues().await.unwrap().contains(&"order".to_owned()));
}

async fn an_item_is_leased_to_one_at_a_time(queue: &dyn Queue) {
    queue.put(item("one", "x")).await.unwrap();
    let first = leased(queue, "one", "a", 1000).await.unwrap();
    assert_eq!((first.attempt, first.lease_until_ms, first.body), (1, 1100, json!("x")));
    assert_eq!(queue.take(take("one", "b", 1099)).await.unwrap(), Taken::Empty { due_ms: Some(1100) });
    let extended = ItemEvent::Extend { token: token("one", "a"), lease_ms: 500 };
    queue.settle(extended.clone(), None, 1050).await.unwrap();
    assert_eq!(id(queue, "one", "c", 1549).await, None);
    assert_eq!(leased(queue, "one", "d", 1550).await.unwrap().attempt, 2, "its time was up");
    for event in [done("one", "a"), fail("one", "a"), extended] {
        assert_eq!(code(queue.settle(event, None, 1551).await), Some(Code::Fenced));
    }
    queue.settle(done("one", "d"), None, 9999).await.expect("late, and nobody else has it");
    queue.settle(done("one", "d"), None, 9999).await.expect("again is the same");
    assert_eq!(id(queue, "one", "e", 99_999).await, None);
    assert_eq!(code(queue.settle(done("one", "never"), None, 1).await), Some(Code::Fenced));
}

async fn a_failure_is_retried_until_the_item_is_dead(queue: &dyn Queue) {
    queue.put(item("deadly", "x")).await.unwrap();
    let mut now = 1000;
    for (attempt, lease) in ["a", "b", "c"].into_iter().enumerate() {
        assert_eq!(leased(queue, "deadly", lease, now).await.unwrap().attempt as usize, attempt + 1);
        queue.settle(fail("deadly", lease), Some(format!("failure {attempt}")), now).await.unwrap();
        assert_eq!(id(queue, "deadly", "z", now + 49).await, None, "there is a pause");
        now += 50;
    }
    assert_eq!(id(queue, "deadly", "z", 99_999).await, None);
    let dead = queue.dead("deadly", 9).await.unwrap();
    assert_eq!(dead.len(), 1);
    assert_eq!((dead[0].id.as_str(), dead[0].attempts, dead[0].error.as_deref()), ("x", 3, Some("failure 2")));
    let status = queue.status("deadly", now).await.unwrap().unwrap();
    let counts = QueueStatus { queue: "deadly".to_owned(), dead: 1, bytes: 3, ..QueueStatus::default() };
    assert_eq!(status, counts);
    queue.dead_item("deadly", "x", ItemEvent::Retry, now).await.unwrap();
    assert_eq!(leased(queue, "deadly", "again", now).await.unwrap().attempt, 1);
    queue
        .settle(ItemEvent::Fail { token: token("deadly", "again"), retry_in_ms: None, dead: true }, None, now)
        .await
        .unwrap();
    queue.dead_item("deadly", "x", ItemEvent::Discard, now).await.unwrap();
    assert_eq!(code(queue.dead_item("deadly", "x", ItemEvent::Retry, now).await), Some(Code::NotFound));
    assert_eq!(queue.status("deadly", now).await.unwrap().unwrap(), QueueStatus { dead: 0, bytes: 0, ..counts });
    assert_eq!(queue.status("no-such", now).await.unwrap(), None);
}

async fn an_item_is_not_taken_before_its_time(queue: &dyn Queue) {
    queue.put(NewItem { not_before_ms: Some(500), priority: 9, ..item("later", "late") }).await.unwrap();
    queue.put(item("later", "now")).await.unwrap();
    assert_eq!(id(queue, "later", "a", 499).await.as_deref(), Some("now"));
    queue.settle(done("later", "a"), None, 499).await.unwrap();
    assert_eq!(queue.take(take("later", "b", 499)).await.unwrap(), Taken::Empty { due_ms: Some(500) });
    assert_eq!(id(queue, "later", "c", 500).await.as_deref(), Some("late"));
}

async fn the_same_id_is_the_same_item(queue: &dyn Queue) {
    assert!(queue.put(item("same", "x")).await.unwrap());
    assert!(!queue.put(item("same", "x")).await.unwrap());
    assert!(queue.put(item("other", "x")).await.unwrap(), "ids belong to their queue");
    assert_eq!(id(queue, "same", "a", 1).await.as_deref(), Some("x"));
    assert!(!queue.put(item("same", "x")).await.unwrap(), "also while it is leased");
    queue.settle(done("same", "a"), None, 2).await.unwrap();
    assert!(!queue.put(item("same", "x")).await.unwrap(), "also when it is done");
    assert_eq!(id(queue, "same", "b", 9999).await, None);
}

async fn ids_are_forgotten_when_they_are_old(queue: &dyn Queue) {
    queue.put(item("old", "x")).await.unwrap();
    id(queue, "old", "a", 1).await.unwrap();
    queue.settle(done("old", "a"), None, 5000).await.unwrap();
    queue.forget(5000).await.unwrap();
    assert!(!queue.put(item("old", "x")).await.unwrap(), "it is not old yet");
    queue.forget(5001).await.unwrap();
    assert_eq!(queue.status("old", 0).await.unwrap(), None, "an empty queue goes, too");
    assert!(queue.put(item("old", "x")).await.unwrap());
}

/// Many workers at once, some of which never come back: every item is done once.
pub async fn many(queue: &dyn Queue, items: usize, workers: usize) {
    let put = |from: usize| async move {
        for number in (from..items).step_by(64) {
            assert!(queue.put(item("many", &format!("i{number}"))).await.unwrap());
        }
    };
    futures_util::future::join_all((0..64.min(items)).map(put)).await;
    let work = |worker: usize| async move {
        let (mut ended, mut turn, mut now) = (Vec::new(), 0, 0);
        loop {
            turn += 1;
            let lease = format!("{worker}-{turn}");
            match leased(queue, "many", &lease, now).await {
                Some(_) if (worker + turn).is_multiple_of(50) => (), // it dies, and its lease runs out
                Some(item) => match queue.settle(done("many", &lease), None, now).await {
                    Ok(()) => ended.push(item.id),
                    Err(error) => assert_eq!(error.code, Code::Fenced),
                },
                None if queue.status("many", now).await.unwrap().unwrap().leased == 0 => return ended,
                None => now += 50,
            }
        }
    };
    let ended = futures_util::future::join_all((0..workers).map(work)).await;
    let mut counts = BTreeMap::new();
    ended.into_iter().flatten().for_each(|id| *counts.entry(id).or_insert(0) += 1);
    let dead = queue.dead("many", usize::MAX >> 1).await.unwrap().len();
    assert_eq!(counts.len() + dead, items);
    assert!(counts.values().all(|times| *times == 1));
}
