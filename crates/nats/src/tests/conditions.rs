//! What the server keeps, and under which conditions.

use std::time::Duration;

use bytes::Bytes;

use super::joined;
use crate::test_server::NatsServer;
use crate::{Condition, LinkFault, Outgoing};
use acheron_fabric::{streams, subjects};

fn letter(number: usize) -> Outgoing {
    let subject = subjects::mail("styx", "styx", "charon");
    Outgoing { subject, body: Bytes::from(number.to_string()), condition: Condition::once(format!("id-{number}")) }
}

#[tokio::test]
async fn a_letter_comes_once_and_stays_until_it_is_confirmed() {
    let mut server = NatsServer::start();
    let link = joined(&server, "styx").await;
    let Outgoing { subject, body, condition } = letter(1);
    let first = link.store(&subject, body.clone(), &condition).await.unwrap();
    assert!(!first.is_duplicate);
    let again = link.store(&subject, body.clone(), &condition).await.unwrap();
    assert_eq!((again.number, again.is_duplicate), (first.number, true));
    let fetched = link.fetch_mail(Duration::from_secs(5)).await.unwrap();
    assert_eq!(
        fetched.iter().map(|it| (it.subject.as_str(), &it.body)).collect::<Vec<_>>(),
        [(subject.as_str(), &body)]
    );
    // Nothing was confirmed: after a kill it comes again.
    server.restart();
    let waited = tokio::time::Instant::now();
    let again = loop {
        match link.fetch_mail(Duration::from_secs(5)).await {
            Ok(letters) if !letters.is_empty() => break letters,
            _ => assert!(waited.elapsed() < Duration::from_secs(90), "the letter is lost"),
        }
    };
    assert_eq!(again[0].body, body);
    link.confirm(&again).await.unwrap();
    assert!(link.fetch_mail(Duration::from_millis(100)).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_batch_is_kept_whole_or_not_at_all() {
    let server = NatsServer::start();
    let link = joined(&server, "styx").await;
    let letters: Vec<Outgoing> = (0..100).map(letter).collect();
    link.store_together("batch-1", &letters).await.unwrap();
    let mut fetched = link.fetch_mail(Duration::from_secs(5)).await.unwrap();
    assert_eq!(fetched.len(), 100);
    assert_eq!(fetched[99].body, Bytes::from("99"));
    link.confirm(&fetched).await.unwrap();
    // One of them is known already: none is kept.
    let mixed = [letter(200), letter(5), letter(201)];
    let refused = link.store_together("batch-2", &mixed).await;
    assert!(matches!(refused, Err(LinkFault::Refused { .. })), "{refused:?}");
    fetched = link.fetch_mail(Duration::from_millis(100)).await.unwrap();
    assert_eq!(fetched.len(), 0);
}

#[tokio::test]
async fn a_record_is_changed_by_who_has_seen_it_and_all_changes_are_found() {
    let server = NatsServer::start();
    let (link, other) = (joined(&server, "styx").await, joined(&server, "lethe").await);
    let subject = subjects::queue_item("crawl", "page 1");
    let body = |text: &'static str| Bytes::from_static(text.as_bytes());
    let first = link.store(&subject, body("a"), &Condition::after(0)).await.unwrap();
    let second = other.store(&subject, body("b"), &Condition::after(first.number)).await.unwrap();
    let late = link.store(&subject, body("c"), &Condition::after(first.number)).await.unwrap_err();
    assert!(late.is_conflict(), "{late:?}");
    let found = link.record(streams::QUEUE, &subject).await.unwrap().unwrap();
    assert_eq!((found.body, found.number), (body("b"), second.number));
    assert_eq!(link.record(streams::QUEUE, &subjects::queue_item("crawl", "none")).await.unwrap(), None);
    for number in 0..1200 {
        let subject = subjects::queue_item("many", &number.to_string());
        let outgoing = Outgoing { subject, body: body("x"), condition: Condition::after(0) };
        link.store(&outgoing.subject, outgoing.body, &outgoing.condition).await.unwrap();
    }
    let all = link.records(streams::QUEUE, subjects::QUEUE_ITEMS, 0).await.unwrap();
    assert_eq!(all.len(), 1201);
    let rest = link.records(streams::QUEUE, subjects::QUEUE_ITEMS, all[1199].number + 1).await.unwrap();
    assert_eq!(rest.len(), 1);
    assert!(link.records(streams::QUEUE, subjects::QUEUE_ITEMS, rest[0].number + 1).await.unwrap().is_empty());
    // A record that is kept for a while goes by itself.
    let condition = Condition::after(second.number).for_a_while(Duration::from_secs(1));
    link.store(&subject, Bytes::new(), &condition).await.unwrap();
    let waited = tokio::time::Instant::now();
    while link.record(streams::QUEUE, &subject).await.unwrap().is_some() {
        assert!(waited.elapsed() < Duration::from_secs(30), "it stays");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
