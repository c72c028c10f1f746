//! The suite of all queues on those of the fabric, against a real server.

use std::sync::Arc;

use super::FabricQueue;
use crate::services::queues::backend::{Queue, Taken};
use crate::services::queues::conformance::{done, holds, item, many, take};
use crate::state::quota::{ByteLimits, Quotas};
use acheron_base::{Clock, Code, Ids, Random};
use acheron_nats::test_server::NatsServer;
use acheron_nats::{Link, LinkOptions};

async fn queue(server: &NatsServer, node: &str, limits: ByteLimits) -> FabricQueue {
    let options = LinkOptions { url: server.url(), node: node.to_owned(), ..LinkOptions::default() };
    let link = Link::connect(&options).await.unwrap();
    link.ready().await.unwrap();
    let quotas = Quotas::default();
    quotas.set(limits);
    FabricQueue::new(link, Arc::new(quotas), Ids::new(Clock::real(), Random::real()))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_fabric_is_a_queue() {
    let server = NatsServer::start();
    holds(&queue(&server, "styx", ByteLimits::default()).await).await;
    // Another host, and the same one after a restart, know the same.
    let other = queue(&server, "lethe", ByteLimits::default()).await;
    assert!(!other.put(item("old", "x")).await.unwrap(), "the last case of the suite has put it");
}

/// `MAIL_ALL=1` makes 10⁴.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_many_items_each_is_done_once_although_workers_die() {
    let server = NatsServer::start();
    let items = if std::env::var_os("MAIL_ALL").is_some() { 10_000 } else { 200 };
    many(&queue(&server, "styx", ByteLimits::default()).await, items, 8).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_item_is_leased_to_one_of_all_hosts_while_the_server_is_killed() {
    let mut server = NatsServer::start();
    let hosts =
        [queue(&server, "styx", ByteLimits::default()).await, queue(&server, "lethe", ByteLimits::default()).await];
    for number in 0..60 {
        hosts[number % 2].put(item("all", &format!("i{number:02}"))).await.unwrap();
    }
    let work = |host: usize| {
        let hosts = &hosts;
        async move {
            let (mut done_here, mut turn) = (Vec::new(), 0);
            loop {
                turn += 1;
                let lease = format!("{host}-{turn}");
                match hosts[host].take(take("all", &lease, 1)).await {
                    Ok(Taken::Leased { item, .. }) => {
                        // An answer that is lost is asked for again: that it is done counts once.
                        while let Err(error) = hosts[host].settle(done("all", &lease), None, 2).await {
                            assert_eq!(error.code, Code::Unavailable, "{error}");
                        }
                        done_here.push(item.id);
                    }
                    Ok(Taken::Empty { .. }) => return done_here,
                    Err(error) => assert_eq!(error.code, Code::Unavailable, "{error}"),
                }
            }
        }
    };
    let killer = async {
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        tokio::task::block_in_place(|| server.restart());
    };
    let (one, two, ()) = tokio::join!(work(0), work(1), killer);
    let mut all: Vec<String> = one.into_iter().chain(two).collect();
    // What was leased by an answer that was lost comes again when that lease is over.
    while let Taken::Leased { item, .. } =
        hosts[0].take(take("all", &format!("late-{}", all.len()), 10_000_000)).await.unwrap()
    {
        hosts[0].settle(done("all", &item.lease), None, 10_000_001).await.unwrap();
        all.push(item.id);
    }
    all.sort();
    assert_eq!(all.len(), 60, "{all:?}");
    all.dedup();
    assert_eq!(all.len(), 60);
}

#[tokio::test]
async fn a_queue_of_the_fabric_takes_so_many_items() {
    let server = NatsServer::start();
    let queue = queue(&server, "styx", ByteLimits { queue_items: 2, ..ByteLimits::default() }).await;
    for id in ["a", "b"] {
        queue.put(item("q", id)).await.unwrap();
    }
    assert_eq!(queue.put(item("q", "c")).await.unwrap_err().code, Code::QueueFull);
    assert!(!queue.put(item("q", "a")).await.unwrap(), "what is there already needs no room");
}
