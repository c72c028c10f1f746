//! Mail by way of the fabric, as a mailbox: a message goes out, through the server and in, and is there when `send` returns. The
//! suite of all mailboxes runs on it, against a real server.

use std::sync::Arc;

use async_trait::async_trait;

use crate::events::EventLogs;
use crate::service::test_access::AllowAll;
use crate::services::mail::address::Address;
use crate::services::mail::backend::Mailbox;
use crate::services::mail::carrier::MailCarrier;
use crate::services::mail::conformance::{agent, holds, many, message};
use crate::services::mail::message::{Mail, NewMail, SentMail};
use crate::services::mail::receive::Reception;
use crate::services::mail::sqlite::SendRoute;
use crate::services::mail::{Post, far};
use crate::state::TestStore;
use crate::state::quota::Quotas;
use acheron_base::{Clock, Ids, Random, Result};
use acheron_fabric::letters::Letter;
use acheron_fabric::names::FarAgent;
use acheron_nats::test_server::NatsServer;
use acheron_nats::{Link, LinkOptions};

struct CarriedMailbox {
    post: Arc<Post>,
}

async fn carrier(store: &TestStore, server: &NatsServer, node: &str) -> MailCarrier {
    let options = LinkOptions { url: server.url(), node: node.to_owned(), ..LinkOptions::default() };
    let link = Link::connect(&options).await.unwrap();
    link.ready().await.unwrap();
    let (clock, quotas) = (Clock::real(), Arc::new(Quotas::default()));
    let event_logs = Arc::new(EventLogs::new((**store).clone(), clock.clone()));
    let post = Post::open((**store).clone(), event_logs, quotas, clock.clone()).unwrap();
    let reception =
        Reception { post, access: Arc::new(AllowAll), has_agent: Arc::new(|_| true), node: node.to_owned() };
    MailCarrier { link, reception, ids: Ids::new(clock, Random::real()) }
}

#[async_trait]
impl Mailbox for CarriedMailbox {
    fn describe(&self) -> String {
        "jetstream".to_owned()
    }

    async fn send(&self, mail: NewMail) -> Result<SentMail> {
        let (post, to) = (self.post.clone(), mail.to.clone());
        let by = SendRoute::Fabric(FarAgent::new("styx", mail.to.name())?);
        let sent = post.mailbox.store().write({
            let post = post.clone();
            move |tx| post.mailbox.send_by(tx, &mail, &by)
        });
        let sent = sent.await?;
        if !sent.is_new {
            return Ok(sent);
        }
        post.outgoing.notify_one();
        let (signal, key) = (post.signal(&to), format!("styx.{}", sent.id));
        let mut changes = signal.listen();
        loop {
            changes.borrow_and_update();
            let key = key.clone();
            if post.mailbox.store().read(move |conn| far::has_come(conn, "styx", &key)).await? {
                return Ok(sent);
            }
            _ = changes.changed().await;
        }
    }

    async fn ack(&self, inbox: &Address, id: &str, at_ms: u64) -> Result<()> {
        self.post.mailbox.ack(inbox, id, at_ms).await
    }

    async fn get(&self, inbox: &Address, id: &str) -> Result<Option<Mail>> {
        self.post.mailbox.get(inbox, id).await
    }

    async fn list(&self, inbox: &Address, after: u64, most: usize) -> Result<Vec<Mail>> {
        self.post.mailbox.list(inbox, after, most).await
    }

    async fn unseen(&self, inbox: &Address, after: u64, most: usize) -> Result<Vec<Mail>> {
        self.post.mailbox.unseen(inbox, after, most).await
    }

    async fn seen(&self, inbox: &Address, ids: &[String], at_ms: u64) -> Result<Vec<(String, Address)>> {
        self.post.mailbox.seen(inbox, ids, at_ms).await
    }

    async fn counts(&self) -> Result<Vec<(Address, u64)>> {
        self.post.mailbox.counts().await
    }

    async fn forget_ids(&self, before_ms: u64) -> Result<()> {
        self.post.mailbox.forget_ids(before_ms).await
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_fabric_is_a_mailbox() {
    let (server, store) = (NatsServer::start(), TestStore::new());
    let carrier = carrier(&store, &server, "styx").await;
    let mailbox = CarriedMailbox { post: carrier.reception.post.clone() };
    let carrying = tokio::spawn(async move { carrier.run().await });
    holds(&mailbox).await;
    many(&mailbox, 16, 20).await;
    carrying.abort();
}

/// `MAIL_ALL=1` sends 10⁵ with 20 kills.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_lost_or_doubled_while_the_server_and_both_hosts_are_killed() {
    let all = std::env::var_os("MAIL_ALL").is_some();
    let (count, kills) = if all { (100_000, 20) } else { (600, 4) };
    let (mut server, one, two) = (NatsServer::start(), TestStore::new(), TestStore::new());
    let sender = carrier(&one, &server, "styx").await;
    let post = sender.reception.post.clone();
    let put = move |tx: &acheron_store::Tx<'_>| -> Result<()> {
        for number in 0..count {
            let mail = NewMail {
                to: Address::Far("lethe/charon".to_owned()),
                ..message(&format!("m{number:06}"), "ada", "x")
            };
            post.mailbox.send_in(tx, &mail)?;
        }
        Ok(())
    };
    one.write(put).await.unwrap();
    drop(sender);
    let inbox = agent("charon");
    for round in 0..=kills {
        // A host that is killed is one whose work is dropped wherever it is.
        let (from, to) = (carrier(&one, &server, "styx").await, carrier(&two, &server, "lethe").await);
        let (sending, receiving) =
            (tokio::spawn(async move { from.run().await }), tokio::spawn(async move { to.run().await }));
        let goal = (count * (round + 1) / (kills + 1)) as u64;
        let begun = tokio::time::Instant::now();
        loop {
            let mailbox = crate::services::mail::SqliteMailbox::new((*two).clone(), Arc::new(Quotas::default()));
            let here =
                mailbox.counts().await.unwrap().iter().find(|(of, _)| *of == inbox).map_or(0, |(_, count)| *count);
            if here >= goal {
                break;
            }
            assert!(begun.elapsed() < std::time::Duration::from_secs(600), "{here} of {goal}");
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        sending.abort();
        receiving.abort();
        if round < kills {
            server.restart();
        }
    }
    let mailbox = crate::services::mail::SqliteMailbox::new((*two).clone(), Arc::new(Quotas::default()));
    let come = mailbox.list(&inbox, 0, usize::MAX).await.unwrap();
    assert_eq!(come.len(), count, "lost or doubled");
    let ids: Vec<&str> = come.iter().map(|mail| mail.id.as_str()).collect();
    assert!(ids.is_sorted(), "those of one sender come in their order");
    assert!(come.iter().all(|mail| mail.from == Address::Far("styx/ada".to_owned())));
    // The receipts have come back, each once.
    let last = carrier(&one, &server, "styx").await;
    let back = carrier(&two, &server, "lethe").await;
    while back.send_some().await.unwrap() > 0 {}
    let told = || async {
        one.read(|conn| {
            Ok(conn
                .prepare_cached("SELECT count(*) FROM events WHERE agent = 'ada' AND kind = 'mail'")?
                .query_row([], |row| row.get::<_, usize>(0))?)
        })
        .await
        .unwrap()
    };
    // What a killed host had fetched and not confirmed comes again only when the server gives it up.
    let begun = tokio::time::Instant::now();
    while told().await < count && begun.elapsed() < std::time::Duration::from_secs(90) {
        last.receive_some(std::time::Duration::from_millis(300)).await.unwrap();
    }
    while last.receive_some(std::time::Duration::from_millis(300)).await.unwrap() > 0 {}
    let receipts = told().await;
    assert_eq!(receipts, count);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_cannot_tell_of_messages_that_it_did_not_get() {
    let (server, store) = (NatsServer::start(), TestStore::new());
    let styx = carrier(&store, &server, "styx").await;
    let sent = NewMail { to: Address::Far("lethe/charon".to_owned()), ..message("m1", "ada", "x") };
    let post = styx.reception.post.clone();
    store.write(move |tx| post.mailbox.send_in(tx, &sent).map(drop)).await.unwrap();
    let receipt = |node: &str, from: &str| crate::services::mail::receive::ArrivedLetter {
        from_node: node.to_owned(),
        agent: "ada".to_owned(),
        letter: Some(Letter::Receipt {
            id: "m1".to_owned(),
            from: from.to_owned(),
            what: "seen".to_owned(),
            reason: None,
            at_ms: 1,
        }),
    };
    for (node, from, told) in [("acheron", "charon", 0), ("lethe", "other", 0), ("lethe", "charon", 1)] {
        styx.reception.receive(vec![receipt(node, from)]).await.unwrap();
        let events: usize = store
            .read(|conn| {
                Ok(conn
                    .prepare_cached("SELECT count(*) FROM events WHERE kind = 'mail'")?
                    .query_row([], |row| row.get(0))?)
            })
            .await
            .unwrap();
        assert_eq!(events, told, "{node}/{from}");
    }
}
