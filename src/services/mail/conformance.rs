//! What every backend of mail has to do, written against the trait. A backend runs all of it by one call of [`holds`].

use std::collections::BTreeSet;

use super::address::Address;
use super::backend::Mailbox;
use super::message::{NewMail, SentMail};
use acheron_base::{Code, Result};

pub fn agent(name: &str) -> Address {
    Address::Agent(name.to_owned())
}

/// A message of `from` to `to`; its body is its id.
pub fn message(id: &str, from: &str, to: &str) -> NewMail {
    let (from, to) = (Address::stored(from), Address::stored(to));
    let (subject, body) = (String::new(), id.to_owned());
    NewMail { id: id.to_owned(), key: None, from, to, subject, body, reply_to: None, thread: None, at_ms: 1000 }
}

fn keyed(id: &str, key: &str, to: &str) -> NewMail {
    NewMail { key: Some(key.to_owned()), ..message(id, "ada", to) }
}

async fn bodies(mailbox: &dyn Mailbox, inbox: &Address) -> Vec<String> {
    mailbox.list(inbox, 0, usize::MAX).await.unwrap().into_iter().map(|mail| mail.body).collect()
}

fn code<T>(outcome: Result<T>) -> Option<Code> {
    outcome.err().map(|error| error.code)
}

/// All of the suite, on an empty mailbox.
pub async fn holds(mailbox: &dyn Mailbox) {
    a_message_is_kept_until_it_is_acknowledged(mailbox).await;
    the_same_id_of_the_same_sender_is_the_same_message(mailbox).await;
    an_answer_belongs_to_its_thread(mailbox).await;
    what_is_seen_is_told_once(mailbox).await;
    inboxes_are_apart(mailbox).await;
    ids_are_forgotten_when_they_are_old(mailbox).await;
}

async fn a_message_is_kept_until_it_is_acknowledged(mailbox: &dyn Mailbox) {
    let inbox = agent("kept");
    for id in ["k1", "k2", "k3"] {
        mailbox.send(message(id, "ada", "kept")).await.unwrap();
    }
    assert_eq!(bodies(mailbox, &inbox).await, ["k1", "k2", "k3"]);
    assert_eq!(bodies(mailbox, &inbox).await.len(), 3, "reading takes nothing away");
    mailbox.ack(&inbox, "k2", 2000).await.unwrap();
    assert_eq!(bodies(mailbox, &inbox).await, ["k1", "k3"]);
    assert_eq!(mailbox.get(&inbox, "k2").await.unwrap(), None);
    mailbox.ack(&inbox, "k2", 2000).await.expect("again is the same");
    assert_eq!(code(mailbox.ack(&inbox, "never", 2000).await), Some(Code::NotFound));
    let first = mailbox.list(&inbox, 0, 1).await.unwrap().remove(0);
    assert_eq!(mailbox.list(&inbox, first.number, 9).await.unwrap()[0].id, "k3");
    let counts = mailbox.counts().await.unwrap();
    assert!(counts.contains(&(inbox, 2)), "{counts:?}");
}

async fn the_same_id_of_the_same_sender_is_the_same_message(mailbox: &dyn Mailbox) {
    let inbox = agent("same");
    let first = mailbox.send(keyed("s1", "order-7", "same")).await.unwrap();
    let again = mailbox.send(keyed("s2", "order-7", "same")).await.unwrap();
    assert_eq!((first.is_new, &again), (true, &SentMail { is_new: false, ..first.clone() }));
    assert_eq!(bodies(mailbox, &inbox).await, ["s1"]);
    mailbox.ack(&inbox, "s1", 2000).await.unwrap();
    assert_eq!(mailbox.send(keyed("s3", "order-7", "same")).await.unwrap().id, "s1", "also after it is dealt with");
    assert_eq!(bodies(mailbox, &inbox).await, Vec::<String>::new());
    assert_eq!(code(mailbox.send(keyed("s4", "order-7", "other")).await), Some(Code::Conflict));
    let other = NewMail { from: agent("bob"), ..keyed("s5", "order-7", "same") };
    assert!(mailbox.send(other).await.unwrap().is_new, "another sender has ids of its own");
}

async fn an_answer_belongs_to_its_thread(mailbox: &dyn Mailbox) {
    let asked = mailbox.send(NewMail { thread: Some("toll".to_owned()), ..message("a1", "ann", "ben") }).await.unwrap();
    assert_eq!((asked.thread.as_str(), asked.answers), ("toll", None));
    let reply = |id: &str, from: &str, to: &str| NewMail { reply_to: Some("a1".to_owned()), ..message(id, from, to) };
    let answer = mailbox.send(reply("a2", "ben", "ann")).await.unwrap();
    assert_eq!((answer.thread.as_str(), answer.answers.as_deref()), ("toll", Some("a1")));
    let told = mailbox.send(reply("a3", "ben", "carl")).await.unwrap();
    assert_eq!((told.thread.as_str(), told.answers), ("toll", None), "only its sender is answered");
    mailbox.ack(&agent("ben"), "a1", 2000).await.unwrap();
    assert_eq!(mailbox.send(reply("a4", "ben", "ann")).await.unwrap().answers.as_deref(), Some("a1"));
    assert_eq!(code(mailbox.send(reply("a5", "eve", "ann")).await), Some(Code::NotFound), "it is not eve's to know");
    assert_eq!(mailbox.send(message("a6", "ann", "ben")).await.unwrap().thread, "a6");
}

async fn what_is_seen_is_told_once(mailbox: &dyn Mailbox) {
    let inbox = agent("seer");
    for id in ["v1", "v2"] {
        mailbox.send(message(id, "ada", "seer")).await.unwrap();
    }
    let ids = ["v1".to_owned(), "none".to_owned()];
    assert_eq!(mailbox.seen(&inbox, &ids, 3000).await.unwrap(), [("v1".to_owned(), agent("ada"))]);
    assert_eq!(mailbox.seen(&inbox, &ids, 4000).await.unwrap(), []);
    assert_eq!(mailbox.get(&inbox, "v1").await.unwrap().unwrap().seen_at_ms, Some(3000));
    let unseen = mailbox.unseen(&inbox, 0, 9).await.unwrap();
    assert_eq!(unseen.iter().map(|mail| mail.id.as_str()).collect::<Vec<_>>(), ["v2"]);
    assert_eq!(bodies(mailbox, &inbox).await, ["v1", "v2"], "seen is not acknowledged");
}

async fn inboxes_are_apart(mailbox: &dyn Mailbox) {
    mailbox.send(message("i1", "ada", "operator")).await.unwrap();
    assert_eq!(code(mailbox.ack(&agent("ada"), "i1", 2000).await), Some(Code::NotFound));
    assert_eq!(mailbox.get(&agent("ada"), "i1").await.unwrap(), None);
    assert_eq!(mailbox.seen(&agent("ada"), &["i1".to_owned()], 1).await.unwrap(), []);
    assert_eq!(bodies(mailbox, &Address::Operator).await, ["i1"]);
}

async fn ids_are_forgotten_when_they_are_old(mailbox: &dyn Mailbox) {
    let inbox = agent("old");
    mailbox.send(keyed("o1", "once", "old")).await.unwrap();
    mailbox.forget_ids(u64::MAX >> 1).await.unwrap();
    assert!(!mailbox.send(keyed("o2", "once", "old")).await.unwrap().is_new, "it is still in the inbox");
    mailbox.ack(&inbox, "o1", 5000).await.unwrap();
    mailbox.forget_ids(5000).await.unwrap();
    assert!(!mailbox.send(keyed("o3", "once", "old")).await.unwrap().is_new, "it is not old yet");
    mailbox.forget_ids(5001).await.unwrap();
    assert!(mailbox.send(keyed("o4", "once", "old")).await.unwrap().is_new);
}

/// Many senders at once, each sending everything twice: every message comes once, and those of one sender in their order.
pub async fn many(mailbox: &dyn Mailbox, senders: usize, each: usize) {
    let inbox = agent("many");
    let send = |sender: usize| async move {
        for number in 0..each {
            let (id, from) = (format!("{sender}-{number}"), format!("s{sender}"));
            for attempt in ["a", "b"] {
                let one = NewMail { id: format!("{id}-{attempt}"), ..message(&id, &from, "many") };
                mailbox.send(NewMail { key: Some(id.clone()), body: number.to_string(), ..one }).await.unwrap();
            }
        }
    };
    futures_util::future::join_all((0..senders).map(send)).await;
    let (mut after, mut seen, mut last) = (0, 0, vec![None; senders]);
    loop {
        let page = mailbox.list(&inbox, after, 10_000).await.unwrap();
        let Some(end) = page.last() else { break };
        after = end.number;
        for mail in &page {
            let sender: usize = mail.from.name()[1..].parse().unwrap();
            let number: usize = mail.body.parse().unwrap();
            assert!(last[sender] < Some(number), "{mail:?} after {:?}", last[sender]);
            last[sender] = Some(number);
        }
        seen += page.len();
    }
    assert_eq!(seen, senders * each);
    let distinct: BTreeSet<_> = last.into_iter().collect();
    assert_eq!(distinct, [Some(each - 1)].into());
}
