//! A hundred thousand symbols: how long it takes to load some by id, to find some by words, to walk their links.
//! Medians over many askings.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::Run;
use super::house::Scratch;
use super::table::{Aim, Figure, time};
use acheron::services::symbols::change::{By, DocumentKind};
use acheron::services::symbols::index::Within;
use acheron::services::symbols::sqlite::Sqlite;
use acheron::services::symbols::store::{Author, SymbolStore};

const WORDS: [&str; 16] = [
    "trust", "repair", "drift", "anchor", "memory", "story", "consent", "audit", "signal", "ledger", "doubt",
    "evidence", "promise", "deadline", "summary", "question",
];

fn symbol(number: usize, count: usize) -> Value {
    let word = |step: usize| WORDS[(number / step) % WORDS.len()];
    let link = |step: usize| format!("S-{:06}", (number * 7 + step * 13) % count);
    json!({
        "id": format!("S-{number:06}"),
        "name": format!("{} {}", word(1), word(16)),
        "macro": format!("{}({}) → {}", word(256), word(3), word(5)),
        "description": format!("{} of {} number {number}", word(7), word(11)),
        "symbol_domain": word(16),
        "linked_patterns": [link(1), link(2), link(3)],
    })
}

/// The median time of `times` askings.
async fn median(times: usize, mut ask: impl AsyncFnMut(usize)) -> Duration {
    let mut taken = Vec::new();
    for time in 0..times {
        let began = Instant::now();
        ask(time).await;
        taken.push(began.elapsed());
    }
    taken.sort();
    taken[times / 2]
}

pub fn rows(run: &Run) -> Vec<Figure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime").block_on(measured(if run.quick { 2_000 } else { 100_000 }))
}

async fn measured(count: usize) -> Vec<Figure> {
    let dir = Scratch::new();
    let store = crate::method::open_state(dir.path());
    let symbol_store = SymbolStore::new(Arc::new(Sqlite::new(store)));
    let documents: Vec<(DocumentKind, Value)> =
        (0..count).map(|number| (DocumentKind::Symbol, symbol(number, count))).collect();
    let author = Author::new(By::who("bench"), 0);
    let began = Instant::now();
    symbol_store.put_many(&documents, false, &author).await.expect("symbols");
    let stored = began.elapsed();
    let began = Instant::now();
    symbol_store.search("trust", 1, &Within::default()).await.expect("an index");
    let indexed = began.elapsed();
    let id = |number: usize| format!("S-{:06}", number * 7919 % count);
    let load = median(1000, async |time| _ = symbol_store.symbols(&[id(time)]).await.expect("a symbol")).await;
    let find = median(50, async |time| {
        let query = format!("{} {}", WORDS[time % 16], WORDS[(time * 5 + 3) % 16]);
        symbol_store.search(&query, 5, &Within::default()).await.expect("symbols");
    });
    let find = find.await;
    let walk = median(100, async |time| {
        let roots: Vec<_> = symbol_store.symbols(&[id(time)]).await.expect("a symbol").into_iter().flatten().collect();
        symbol_store.walk(&roots, 3, 256).await.expect("a walk");
    });
    let walk = walk.await;
    let began = Instant::now();
    symbol_store.put(DocumentKind::Symbol, &symbol(1, count), &author).await.expect("a symbol");
    symbol_store.search("trust", 1, &Within::default()).await.expect("symbols");
    let changed = began.elapsed();
    let told = |what: &str, took: Duration| {
        Figure::words(format!("{count} symbols: {what}"), time(took.as_secs_f64()), Aim::Told)
    };
    vec![
        told("stored", stored),
        told("the index made", indexed),
        told("one loaded by id", load),
        told("the best five for two words", find),
        told("a walk of three links", walk),
        told("one changed, and found again", changed),
    ]
}
