//! Requests and answers.

use std::time::Duration;

use bytes::Bytes;

use super::joined;
use crate::LinkFault;
use crate::test_server::NatsServer;
use acheron_fabric::subjects::{self, Verb};

const SOON: Duration = Duration::from_secs(5);

#[tokio::test]
async fn a_request_is_answered_and_nobody_is_known_at_once() {
    let server = NatsServer::start();
    let (styx, lethe) = (joined(&server, "styx").await, joined(&server, "lethe").await);
    let hello = || subjects::request("styx", "lethe", Verb::Hello);
    let begun = tokio::time::Instant::now();
    assert_eq!(lethe.ask(hello(), Bytes::new(), SOON).await, Err(LinkFault::Nobody));
    assert!(begun.elapsed() < SOON, "it was not waited for");
    let mut requests = styx.listen().await.unwrap();
    let own = styx.clone();
    tokio::spawn(async move {
        while let Some(request) = requests.next().await {
            let said = format!("{} {} {:?}", request.from, request.verb.name(), request.body);
            own.answer(&request, said.into()).await;
        }
    });
    // That the server knows of the subscription is known by a request to oneself.
    let own = subjects::request("styx", "styx", Verb::Hello);
    while styx.ask(own.clone(), Bytes::new(), SOON).await.is_err() {}
    let answer = lethe.ask(hello(), Bytes::from_static(b"x"), SOON).await.unwrap();
    assert_eq!(answer, Bytes::from_static(b"lethe hello b\"x\""));
}

#[tokio::test]
async fn an_answer_goes_to_who_asked_and_not_to_whom_it_named() {
    let server = NatsServer::start();
    let (styx, lethe) = (joined(&server, "styx").await, joined(&server, "lethe").await);
    let mut requests = styx.listen().await.unwrap();
    let own = subjects::request("styx", "styx", Verb::Hello);
    let ready = tokio::spawn({
        let styx = styx.clone();
        async move {
            while styx.ask(own.clone(), Bytes::new(), Duration::from_millis(300)).await == Err(LinkFault::Nobody) {}
        }
    });
    assert_eq!(requests.next().await.unwrap().from, "styx");
    ready.await.unwrap();
    // Lethe names another's inbox.
    let hello = subjects::request("styx", "lethe", Verb::Hello);
    lethe.client.publish_with_reply(hello.clone(), "_INBOX.acheron.x", "bad".into()).await.unwrap();
    lethe.client.publish_with_reply(hello, "_INBOX.lethe.x", "good".into()).await.unwrap();
    loop {
        let request = requests.next().await.unwrap();
        if request.from == "lethe" {
            assert_eq!(request.body, Bytes::from_static(b"good"));
            break;
        }
    }
}

#[tokio::test]
async fn a_server_that_does_not_answer_is_unknown_and_not_a_hang() {
    let server = NatsServer::start();
    let link = joined(&server, "styx").await;
    server.freeze();
    let subject = subjects::mail("styx", "styx", "charon");
    let outcome = link.store(&subject, Bytes::from_static(b"x"), &crate::Condition::once("1")).await;
    assert!(matches!(outcome, Err(LinkFault::Unknown(_))), "{outcome:?}");
    server.thaw();
    // With the same id it is the same message, whether the first came through or not.
    let once = crate::Condition::once("1");
    link.store_surely(&subject, Bytes::from_static(b"x"), &once, Duration::from_secs(60)).await.unwrap();
    let letters = link.fetch_mail(SOON).await.unwrap();
    assert_eq!(letters.len(), 1);
}

#[tokio::test]
async fn hints_that_nobody_reads_keep_nothing_else() {
    let server = NatsServer::start();
    let link = joined(&server, "styx").await;
    let hints = link.hints().await.unwrap();
    // More than the client keeps for a reader: it drops the rest, and says so.
    for _ in 0..100_000 {
        link.tell(subjects::hints_from("styx"), Bytes::from_static(b"queue crawl")).await;
    }
    let subject = subjects::mail("styx", "styx", "charon");
    link.store(&subject, Bytes::from_static(b"x"), &crate::Condition::once("1")).await.unwrap();
    assert_eq!(link.fetch_mail(SOON).await.unwrap().len(), 1);
    drop(hints);
}
