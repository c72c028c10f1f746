//! A proposal without a model: the sentences that say most about a conversation, word for word, on a page of their own.

use std::collections::{BTreeMap, BTreeSet};

use super::proposal::{Citation, ProposedPage, SleepProposal, link};
use super::source::{SourceMessage, SourceRequest};
use super::validate::WikiView;
use crate::code::{code, within};
use crate::message::Role;
use crate::page::{Class, ROOT, check_path, fold, is_hidden, title};
use acheron_base::words::telling;

/// How many sentences of one request are kept, and how long one may be, in characters.
const SENTENCES: usize = 5;
const SHORTEST: usize = 20;
const LONGEST: usize = 300;
/// How many pages a new page leads to.
const RELATED: usize = 8;

/// The page of a conversation with its most telling sentences, and a link to it from the entry page. Nothing if there is
/// nothing to tell.
pub fn extract(source: &SourceRequest, view: &WikiView<'_>) -> Option<SleepProposal> {
    let path = format!("episodic/{} {}.md", source.date(), source.conversation());
    check_path(&path).ok()?;
    let before = (view.page)(&path);
    let chosen = telling_sentences(&source.messages, before.as_deref().unwrap_or_default());
    if chosen.is_empty() {
        return None;
    }
    let mut text = before.clone().unwrap_or_else(|| format!("# {}\n", title(&path)));
    text = format!("{}\n", text.trim_end());
    if before.is_none() {
        let related = related(&chosen, view);
        text.push_str(&related.iter().map(|name| format!("\n- [[{name}]]")).collect::<String>());
        text.push('\n');
    }
    let mut citations = Vec::new();
    for (message, sentence) in &chosen {
        let by = if message.role == Role::User { "said" } else { "answered" };
        text.push_str(&format!("- {by}: {sentence} {}\n", link(&message.path)));
        citations.push(Citation { message: message.path.clone(), quote: sentence.clone() });
    }
    let mut pages = vec![ProposedPage { path: path.clone(), text, citations, removed: Vec::new() }];
    pages.extend(before.is_none().then(|| entry(&path, view)));
    Some(SleepProposal { pages })
}

/// The entry page with a link to a new page.
fn entry(path: &str, view: &WikiView<'_>) -> ProposedPage {
    let root = (view.page)(ROOT).unwrap_or_else(|| "# Index\n".to_owned());
    let gap = if root.trim_end().lines().last().is_some_and(|line| line.starts_with("- ")) { "\n" } else { "\n\n" };
    let text = format!("{}{gap}- [[{}]]\n", root.trim_end(), title(path));
    ProposedPage { path: ROOT.to_owned(), text, ..ProposedPage::default() }
}

/// The sentences whose words the conversation uses most, in their order; those that a page has already are left out.
fn telling_sentences<'a>(messages: &'a [SourceMessage], known: &str) -> Vec<(&'a SourceMessage, String)> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for message in messages {
        telling(&message.text).into_iter().for_each(|word| *counts.entry(word).or_default() += 1);
    }
    let (mut all, mut seen) = (Vec::new(), BTreeSet::new());
    for message in messages {
        for sentence in sentences(&message.text) {
            if known.contains(sentence) || !seen.insert(fold(sentence)) {
                continue;
            }
            let own: BTreeSet<String> = telling(sentence).into_iter().collect();
            let total: usize = own.iter().filter_map(|word| counts.get(word)).sum();
            if own.len() >= 2 {
                // A long sentence is not better because it is long.
                all.push((total * 1000 / (own.len() + 4), all.len(), message, sentence));
            }
        }
    }
    all.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
    all.truncate(SENTENCES);
    all.sort_by_key(|it| it.1);
    all.into_iter().map(|(_, _, message, sentence)| (message, sentence.to_owned())).collect()
}

/// The plain statements of a text: no question, no code, no markup.
fn sentences(text: &str) -> Vec<&str> {
    let stretches = code(text);
    let (mut found, mut at) = (Vec::new(), 0);
    for line in text.split_inclusive('\n') {
        if !within(&stretches, at) {
            split(line, &mut found);
        }
        at += line.len();
    }
    let plain = |it: &&str| {
        let words: Vec<&str> = it.split_whitespace().collect();
        (SHORTEST..=LONGEST).contains(&words.join(" ").chars().count())
            && !it.ends_with(['?', '？'])
            && !it.contains(['[', ']', '<', '>', '`', '|', '{', '}'])
            && !it.contains("://")
            && !it.starts_with(['#', '-', '*', '+'])
            && !it.contains(is_hidden)
            && !it.contains('\t')
    };
    found.into_iter().filter(plain).collect()
}

/// A line at its full stops; `v1.2` has none.
fn split<'a>(line: &'a str, found: &mut Vec<&'a str>) {
    let mut begin = 0;
    for (at, c) in line.char_indices() {
        let end = at + c.len_utf8();
        if ".!?。！？".contains(c) && line[end..].chars().next().is_none_or(char::is_whitespace) {
            found.push(line[begin..end].trim());
            begin = end;
        }
    }
    found.push(line[begin..].trim());
}

/// The titles of pages that the sentences name, the longest first.
fn related(chosen: &[(&SourceMessage, String)], view: &WikiView<'_>) -> Vec<String> {
    let said = fold(&chosen.iter().map(|(_, sentence)| sentence.as_str()).collect::<Vec<_>>().join(" "));
    let pages = view.index.pages().filter(|page| page.class == Class::Node);
    let mut named: Vec<&str> = pages.map(|page| page.title()).filter(|name| names(&said, &fold(name))).collect();
    named.sort_by(|a, b| b.len().cmp(&a.len()).then(a.cmp(b)));
    named.dedup();
    // A title of two pages leads nowhere.
    named.retain(|name| view.index.titled_folded(name).count() == 1);
    named.into_iter().take(RELATED).map(str::to_owned).collect()
}

/// Whether a text has a name as whole words.
fn names(said: &str, name: &str) -> bool {
    let bound = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric());
    name.chars().count() > 2
        && said
            .match_indices(name)
            .any(|(at, _)| bound(said[..at].chars().next_back()) && bound(said[at + name.len()..].chars().next()))
}
