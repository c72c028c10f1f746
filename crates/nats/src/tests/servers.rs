//! Servers that will not do, and servers that fail.

use std::time::Duration;

use bytes::Bytes;

use super::{connected, joined};
use crate::test_server::{NatsServer, cluster, old_server};
use crate::{Condition, Link, LinkOptions};
use acheron_fabric::subjects;

#[tokio::test]
async fn the_server_of_debian_12_is_refused() {
    let server = NatsServer::with(&old_server(), "", "");
    let options = LinkOptions { url: server.url(), node: "styx".to_owned(), ..LinkOptions::default() };
    let refused = Link::connect(&options).await.map(drop).unwrap_err();
    assert_eq!(refused.code.name(), "unavailable");
    assert!(refused.message.contains("2.12 or newer is needed"), "{refused}");
    let nobody = LinkOptions { url: "nats://127.0.0.1:1".to_owned(), ..options };
    assert!(Link::connect(&nobody).await.map(drop).unwrap_err().message.contains("cannot be reached"));
}

/// Sends numbered letters until told to stop; returns those that were acknowledged.
async fn send(link: Link, from: usize, stop: tokio::sync::watch::Receiver<bool>) -> Vec<String> {
    let (subject, mut sent) = (subjects::mail("styx", "styx", "charon"), Vec::new());
    for number in 0.. {
        if *stop.borrow() {
            break;
        }
        let id = format!("{from}-{number}");
        let once = Condition::once(id.as_str());
        if link.store_surely(&subject, id.clone().into(), &once, Duration::from_secs(60)).await.is_ok() {
            sent.push(id);
        }
    }
    sent
}

/// Everything that was acknowledged comes, and nothing comes twice.
async fn all_come(link: &Link, sent: Vec<String>) {
    let mut come: Vec<Bytes> = Vec::new();
    let begun = tokio::time::Instant::now();
    while come.len() < sent.len() {
        assert!(begun.elapsed() < Duration::from_secs(120), "{} of {}", come.len(), sent.len());
        let Ok(letters) = link.fetch_mail(Duration::from_secs(2)).await else { continue };
        // What was confirmed and not heard of would come again: here every letter counts.
        while link.confirm(&letters).await.is_err() {}
        come.extend(letters.into_iter().map(|letter| letter.body));
    }
    let distinct: std::collections::BTreeSet<_> = come.iter().collect();
    let sent: std::collections::BTreeSet<Bytes> = sent.into_iter().map(Bytes::from).collect();
    assert!(sent.iter().all(|id| distinct.contains(id)), "acknowledged and lost");
    assert_eq!(distinct.len(), come.len(), "something came twice");
}

#[tokio::test]
async fn what_one_server_acknowledges_survives_its_kills() {
    let mut server = NatsServer::start();
    let link = joined(&server, "styx").await;
    let (stop, stopped) = tokio::sync::watch::channel(false);
    let senders: Vec<_> = (0..4).map(|from| tokio::spawn(send(link.clone(), from, stopped.clone()))).collect();
    for _ in 0..5 {
        tokio::time::sleep(Duration::from_millis(400)).await;
        server.restart();
    }
    stop.send_replace(true);
    let mut sent = Vec::new();
    for sender in senders {
        sent.extend(sender.await.unwrap());
    }
    assert!(sent.len() > 20, "{}", sent.len());
    all_come(&link, sent).await;
}

/// Waits until a cluster has its streams.
async fn set_up(link: &Link) {
    let begun = tokio::time::Instant::now();
    while let Err(error) = link.set_up(3, &["styx".to_owned()]).await {
        assert!(begun.elapsed() < Duration::from_secs(60), "{error}");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

#[tokio::test]
async fn what_three_servers_acknowledge_survives_kills_freezes_and_the_end_of_all() {
    let mut servers = cluster();
    let urls: Vec<String> = servers.iter().map(NatsServer::url).collect();
    let link = connected(&urls.join(","), "styx", None).await;
    set_up(&link).await;
    let (stop, stopped) = tokio::sync::watch::channel(false);
    let senders: Vec<_> = (0..4).map(|from| tokio::spawn(send(link.clone(), from, stopped.clone()))).collect();
    let pause = |ms| tokio::time::sleep(Duration::from_millis(ms));
    pause(1000).await;
    servers[0].restart();
    pause(1000).await;
    servers[1].freeze();
    pause(5000).await;
    servers[1].thaw();
    pause(500).await;
    for server in &mut servers {
        server.kill();
    }
    for server in &mut servers {
        server.begin();
    }
    pause(1000).await;
    stop.send_replace(true);
    let mut sent = Vec::new();
    for sender in senders {
        sent.extend(sender.await.unwrap());
    }
    assert!(sent.len() > 20, "{}", sent.len());
    all_come(&link, sent).await;
}
