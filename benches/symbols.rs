//! A hundred thousand symbols: how long it takes to load some by id, to find some by words, to walk their links.
//!
//! `cargo bench --bench symbols [-- COUNT]`. The figures are medians over many askings; nothing is asserted.

use std::sync::Arc;
use std::time::{Duration, Instant};

use acheron::services::symbols::change::{By, Kind};
use acheron::services::symbols::index::Within;
use acheron::services::symbols::shelf::{Author, Shelf};
use acheron::services::symbols::sqlite::Sqlite;
use acheron::store::Store;
use serde_json::{Value, json};

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

#[tokio::main]
async fn main() {
    let count = std::env::args().filter_map(|word| word.parse().ok()).next().unwrap_or(100_000);
    let dir = tempfile::tempdir().unwrap();
    let shelf = Shelf::new(Arc::new(Sqlite::new(Store::open(dir.path()).unwrap())));
    let documents: Vec<(Kind, Value)> = (0..count).map(|number| (Kind::Symbol, symbol(number, count))).collect();
    let began = Instant::now();
    shelf.put_many(&documents, false, &Author::new(By::who("bench"), 0)).await.unwrap();
    println!("{count} symbols stored       {:?}", began.elapsed());
    let began = Instant::now();
    shelf.search("trust", 1, &Within::default()).await.unwrap();
    println!("the index made            {:?}", began.elapsed());
    let id = |number: usize| format!("S-{:06}", number * 7919 % count);
    let load = median(1000, async |time| _ = shelf.symbols(&[id(time)]).await.unwrap()).await;
    println!("load by id                {load:?}");
    let find = median(50, async |time| {
        let query = format!("{} {}", WORDS[time % 16], WORDS[(time * 5 + 3) % 16]);
        shelf.search(&query, 5, &Within::default()).await.unwrap();
    });
    println!("text query, best five     {:?}", find.await);
    let walk = median(100, async |time| {
        let roots: Vec<_> = shelf.symbols(&[id(time)]).await.unwrap().into_iter().flatten().collect();
        shelf.walk(&roots, 3, 256).await.unwrap();
    });
    println!("walk of three links       {:?}", walk.await);
    let began = Instant::now();
    shelf.put(Kind::Symbol, &symbol(1, count), &Author::new(By::who("bench"), 0)).await.unwrap();
    shelf.search("trust", 1, &Within::default()).await.unwrap();
    println!("one change, found again   {:?}", began.elapsed());
}
