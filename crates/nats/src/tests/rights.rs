//! What the server lets a host do, with the rights that are generated.

use std::time::Duration;

use bytes::Bytes;
use serde_json::Value;

use super::connected;
use crate::test_server::{NatsServer, server};
use crate::{Condition, LeaseHolder, Link, LinkOptions, NodeLease, new_seed, public_key};
use acheron_fabric::lease::LeaseTimes;
use acheron_fabric::subjects::{self, Verb};
use acheron_fabric::{rights, streams};

#[tokio::test]
async fn a_host_can_do_what_it_needs_and_cannot_pretend_to_be_another() {
    let seeds: Vec<String> = (0..3).map(|_| new_seed().unwrap()).collect();
    let keys: Vec<String> = seeds.iter().map(|seed| public_key(seed).unwrap()).collect();
    let hosts = [("styx".to_owned(), keys[1].clone()), ("lethe".to_owned(), keys[2].clone())];
    let server = NatsServer::with(&server(), "sync_interval: always", &rights::authorization(Some(&keys[0]), &hosts));
    let operator = connected(&server.url(), "operator-of-it", Some(&seeds[0])).await;
    let names = ["styx".to_owned(), "lethe".to_owned()];
    // A host may not set anything up.
    let lethe = connected(&server.url(), "lethe", Some(&seeds[2])).await;
    let refused = tokio::time::timeout(Duration::from_secs(30), lethe.set_up(1, &names)).await.unwrap();
    assert!(refused.is_err());
    operator.set_up(1, &names).await.unwrap();
    operator.probe_fencing().await.unwrap();
    let styx = connected(&server.url(), "styx", Some(&seeds[1])).await;
    for link in [&styx, &lethe] {
        assert_eq!(link.ready().await.unwrap(), 1);
    }
    let holder = LeaseHolder { instance: "a".to_owned(), started_at_ms: 1, token: 0, about: Value::Null };
    NodeLease::take(&styx, LeaseTimes::NODE, holder.clone()).await.unwrap();
    let mail = subjects::mail("lethe", "styx", "charon");
    styx.store(&mail, Bytes::from_static(b"x"), &Condition::once("1")).await.unwrap();
    let letters = lethe.fetch_mail(Duration::from_secs(5)).await.unwrap();
    assert_eq!(letters.len(), 1);
    lethe.confirm(&letters).await.unwrap();
    styx.store(&subjects::queue_item("crawl", "1"), Bytes::new(), &Condition::after(0)).await.unwrap();
    assert_eq!(lethe.records(streams::QUEUE, subjects::QUEUE_ITEMS, 0).await.unwrap().len(), 1);
    let mut requests = styx.listen().await.unwrap();
    let answering = tokio::spawn(async move {
        while let Some(request) = requests.next().await {
            styx.answer(&request, Bytes::from_static(b"here")).await;
        }
    });
    let hello = subjects::request("styx", "lethe", Verb::Hello);
    let answer = async {
        loop {
            if let Ok(answer) = lethe.ask(hello.clone(), Bytes::new(), Duration::from_secs(5)).await {
                break answer;
            }
        }
    };
    assert_eq!(answer.await, Bytes::from_static(b"here"));

    // As another: none of it arrives.
    let soon = Duration::from_millis(500);
    let pretended = subjects::request("styx", "acheron", Verb::Call);
    assert!(lethe.ask(pretended, Bytes::new(), soon).await.is_err());
    for subject in
        [subjects::mail("lethe", "styx", "charon"), subjects::presence("styx"), subjects::offered("styx", "dm")]
    {
        let stored = tokio::time::timeout(soon, lethe.store(&subject, Bytes::new(), &Condition::default())).await;
        assert!(!matches!(stored, Ok(Ok(_))), "{subject}");
    }
    for stream in [streams::MAIL, "KV_ach-nodes"] {
        let request = format!("$JS.API.STREAM.MSG.GET.{stream}");
        assert!(lethe.ask(request, Bytes::from_static(b"{\"seq\":1}"), soon).await.is_err(), "{stream}");
    }
    // Its name with the key of another, and no key at all.
    let wrong = LinkOptions { url: server.url(), node: "styx".to_owned(), seed: None, roots: None };
    assert!(Link::connect(&wrong).await.is_err());
    let stranger = LinkOptions { seed: Some(new_seed().unwrap()), ..wrong.clone() };
    assert!(Link::connect(&stranger).await.is_err());
    // With its own key under the name of another it connects, and can do nothing under that name.
    let disguised = connected(&server.url(), "styx", Some(&seeds[2])).await;
    let taken =
        tokio::time::timeout(Duration::from_secs(30), NodeLease::take(&disguised, LeaseTimes::NODE, holder)).await;
    assert!(!matches!(taken, Ok(Ok(_))));
    answering.abort();
}
