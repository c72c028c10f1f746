//! The sentences and deeds that an author writes into pages: facts, topics of conversation, deeds. `load` uses it.

use crate::files::Files;
use crate::md::{self, fields};
use crate::rule::Condition;
use crate::world::{Deed, Fact, Fault, Topic};

/// The page of a cartridge that lists its deeds.
pub const DEEDS: &str = "lore/MECHANICS/DEEDS.md";

/// The facts of a page: the bullets that are not `key: value` lines, before the first chapter (`## …`) or under the named one.
/// `when <condition>: <sentence>` holds only at times. The second list is what could not be read, with its line.
pub fn facts_under(page: &str, chapter: Option<&str>) -> (Vec<Fact>, Vec<(usize, String)>) {
    let (mut facts, mut wrong) = (Vec::new(), Vec::new());
    let mut under: Option<String> = None;
    for (at, line) in page.lines().enumerate() {
        if let Some((level, title)) = md::heading(line) {
            under = (level > 1).then(|| title.to_owned());
            continue;
        }
        let here = match (&under, chapter) {
            (None, None) => true,
            (Some(under), Some(wanted)) => under.eq_ignore_ascii_case(wanted),
            _ => false,
        };
        let Some(bullet) = line.trim().strip_prefix("- ").filter(|_| here) else { continue };
        match fact(at + 1, bullet.trim()) {
            Ok(Some(fact)) => facts.push(fact),
            Ok(None) => (),
            Err(message) => wrong.push((at + 1, message)),
        }
    }
    (facts, wrong)
}

/// One bullet as a fact; `None` for a `key: value` line.
fn fact(line: usize, bullet: &str) -> Result<Option<Fact>, String> {
    let conditional = bullet.strip_prefix("when ").and_then(|rest| rest.split_once(": "));
    if let Some((when, text)) = conditional {
        let when = Condition::parse(when).map_err(|fault| fault.message)?;
        return Ok(Some(Fact { line, when, text: text.trim().to_owned() }));
    }
    let keyed = fields(bullet).next().is_some();
    Ok((!keyed && !bullet.is_empty()).then(|| Fact { line, when: Condition::default(), text: bullet.to_owned() }))
}

/// The topics of a person: `- boats, Merrow: what they say about it` under `## Topics`.
pub fn topics(page: &str) -> (Vec<Topic>, Vec<(usize, String)>) {
    let (mut topics, mut wrong) = (Vec::new(), Vec::new());
    let mut inside = false;
    for (at, line) in page.lines().enumerate() {
        if let Some((_, title)) = md::heading(line) {
            inside = title.eq_ignore_ascii_case("topics");
            continue;
        }
        let Some(bullet) = line.trim().strip_prefix("- ").filter(|_| inside) else { continue };
        let Some((words, answer)) = bullet.split_once(": ") else {
            wrong.push((at + 1, format!("`{bullet}` is not a topic like \"boats, Merrow: what is said about it\"")));
            continue;
        };
        let words = words.split(',').map(|word| word.trim().to_owned()).filter(|word| !word.is_empty()).collect();
        match fact(at + 1, answer.trim()) {
            Ok(Some(answer)) => topics.push(Topic { words, answer }),
            Ok(None) => {
                let answer = Fact { line: at + 1, when: Condition::default(), text: answer.trim().to_owned() };
                topics.push(Topic { words, answer });
            }
            Err(message) => wrong.push((at + 1, message)),
        }
    }
    (topics, wrong)
}

/// The deeds of a cartridge: rows like the stages of a quest, that belong to none.
pub fn deeds(files: &Files) -> (Vec<Deed>, Vec<Fault>) {
    let (mut deeds, mut faults) = (Vec::new(), Vec::new());
    let text = files.get(DEEDS).map(String::as_str).unwrap_or_default();
    for table in md::tables(text).into_iter().filter(|table| table.has("do")) {
        for row in &table.rows {
            let (step, unread) = crate::load::stage(&table, row);
            faults.extend(unread.into_iter().map(|message| Fault { path: DEEDS.into(), line: row.line, message }));
            deeds.push(Deed { step, once: table.get(row, "once") != "no" });
        }
    }
    (deeds, faults)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_are_sentences_and_may_hold_only_at_times() {
        let page = "# Room\n\n- smell: soot\n- The wick is dry.\n- when quest @lamp done: The lamp burns.\n\n## Other\n\n- Not this.\n";
        let (facts, wrong) = facts_under(page, None);
        let shown: Vec<(usize, &str, usize)> =
            facts.iter().map(|own| (own.line, own.text.as_str(), own.when.0.len())).collect();
        assert_eq!(shown, [(4, "The wick is dry.", 0), (5, "The lamp burns.", 1)]);
        assert!(wrong.is_empty());
        assert_eq!(facts_under(page, Some("other")).0[0].text, "Not this.");
        assert_eq!(facts_under("- when it rains: Wet.\n", None).1, [(1, "`it rains` is not a condition".to_owned())]);
    }

    #[test]
    fn topics_have_words_and_an_answer() {
        let (topics, wrong) =
            topics("# Jun\n\n## Topics\n\n- boats, Merrow: Nine went out.\n- fog: when night: It sings.\n- nothing\n");
        assert_eq!(
            (topics.len(), topics[0].words.join("/"), topics[1].answer.when.0.len()),
            (2, "boats/Merrow".into(), 1)
        );
        assert_eq!(wrong[0].0, 7);
    }
}
