#[cfg(feature = "fabric")]
mod carried;

use std::sync::Arc;

use super::conformance::{agent, holds, many, message};
use super::*;
use crate::state::TestStore;
use crate::state::quota::{ByteLimits, Quotas};
use acheron_base::Code;

fn mailbox(store: &TestStore, limits: ByteLimits) -> SqliteMailbox {
    let quotas = Quotas::default();
    quotas.set(limits);
    SqliteMailbox::new((**store).clone(), Arc::new(quotas))
}

#[tokio::test]
async fn the_database_is_a_mailbox() {
    let store = TestStore::new();
    holds(&mailbox(&store, ByteLimits::default())).await;
}

/// `MAIL_ALL=1` sends 10⁵, each of them twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_many_messages_that_are_sent_twice_each_comes_once_and_in_order() {
    let store = TestStore::new();
    let each = if std::env::var_os("MAIL_ALL").is_some() { 1563 } else { 50 };
    let limits = ByteLimits { mail_messages: 2_000_000, ..ByteLimits::default() };
    many(&mailbox(&store, limits), 64, each).await;
}

#[tokio::test]
async fn an_inbox_takes_so_many_messages_and_bytes_and_half_of_them_from_one_agent() {
    let store = TestStore::new();
    let mail = mailbox(&store, ByteLimits { mail_messages: 4, mail_bytes: 100, ..ByteLimits::default() });
    let code = |outcome: acheron_base::Result<_>| outcome.err().map(|error| error.code);
    for id in ["a1", "a2"] {
        mail.send(message(id, "ada", "box")).await.unwrap();
    }
    let refused = mail.send(message("a3", "ada", "box")).await.unwrap_err();
    assert_eq!((refused.code, refused.errno()), (Code::QueueFull, libc::EAGAIN));
    assert!(refused.message.contains("your part of the inbox would have 3 messages"), "{refused}");
    let large = message::NewMail { body: "x".repeat(60), ..message("b1", "bob", "box") };
    let refused = mail.send(large.clone()).await.unwrap_err();
    assert_eq!((refused.code, refused.errno()), (Code::QuotaExceeded, libc::EDQUOT));
    assert!(refused.message.contains("`limits.mail_bytes` in the mountspec"), "{refused}");
    for id in ["o1", "o2"] {
        mail.send(message(id, "operator", "box")).await.unwrap();
    }
    assert_eq!(code(mail.send(message("o3", "operator", "box")).await), Some(Code::QueueFull));
    mail.ack(&agent("box"), "a1", 1).await.unwrap();
    mail.send(message("b2", "bob", "box")).await.expect("there is room again");
}

#[tokio::test]
async fn what_is_purged_is_gone_with_its_inbox_and_others_keep_what_it_sent() {
    let store = TestStore::new();
    let mail = mailbox(&store, ByteLimits::default());
    mail.send(message("to", "ada", "gone")).await.unwrap();
    mail.send(message("from", "gone", "ada")).await.unwrap();
    store.write(|tx| purge(tx, "gone")).await.unwrap();
    assert_eq!(mail.list(&agent("gone"), 0, 9).await.unwrap(), []);
    assert_eq!(mail.list(&agent("ada"), 0, 9).await.unwrap().len(), 1);
    mail.ack(&agent("ada"), "from", 1).await.unwrap();
}
