//! The lease on a name.

use std::time::Duration;

use serde_json::{Value, json};

use super::joined;
use crate::test_server::NatsServer;
use crate::{LeaseHolder, NodeLease};
use acheron_base::Code;
use acheron_fabric::lease::LeaseTimes;

const SHORT: LeaseTimes = LeaseTimes { ttl_ms: 2000, renew_ms: 300, stop_ms: 1500 };

fn holder(instance: &str) -> LeaseHolder {
    LeaseHolder { instance: instance.to_owned(), started_at_ms: 1, token: 0, about: Value::Null }
}

#[tokio::test]
async fn a_name_has_one_holder_and_the_next_has_a_higher_token() {
    let server = NatsServer::start();
    let (one, two) = (joined(&server, "styx").await, joined(&server, "styx").await);
    let lease = NodeLease::take(&one, SHORT, holder("a")).await.unwrap();
    let (first, mut state) = (lease.watch().borrow().unwrap(), lease.watch());
    let refused = NodeLease::take(&two, SHORT, holder("b")).await.map(drop).unwrap_err();
    assert_eq!(refused.code, Code::Fenced);
    assert!(refused.message.contains("another host holds the name `styx`"), "{refused}");
    // Kept for longer than it lasts without being renewed.
    let keeping = tokio::spawn(lease.keep(|| json!({"load": 1})));
    tokio::time::sleep(Duration::from_millis(3000)).await;
    assert!(NodeLease::take(&two, SHORT, holder("b")).await.is_err());
    assert_eq!(*state.borrow_and_update(), Some(first));
    // The same host starts again: it has its name back at once, and its former self finds out.
    let again = NodeLease::take(&two, SHORT, holder("a")).await.unwrap();
    assert!(again.watch().borrow().unwrap() > first);
    keeping.await.unwrap();
    assert_eq!(*state.borrow(), None, "the former is fenced");
    // It goes in good order: the name is free.
    NodeLease::release(&two, again.watch().borrow().unwrap()).await;
    NodeLease::take(&one, SHORT, holder("b")).await.unwrap();
}

#[tokio::test]
async fn who_cannot_renew_stops_before_another_can_begin() {
    let server = NatsServer::start();
    let (one, two) = (joined(&server, "styx").await, joined(&server, "styx").await);
    let lease = NodeLease::take(&one, SHORT, holder("a")).await.unwrap();
    let state = lease.watch();
    let keeping = tokio::spawn(lease.keep(|| Value::Null));
    server.freeze();
    keeping.await.unwrap();
    assert_eq!(*state.borrow(), None);
    server.thaw();
    let waited = tokio::time::Instant::now();
    while let Err(error) = NodeLease::take(&two, SHORT, holder("b")).await {
        assert!(waited.elapsed() < Duration::from_secs(60), "{error}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
