//! Words for the full-text index, and what to ask it for.
//!
//! FTS5 takes a run of Han or Kana for one long word. So such runs are written as overlapping pairs, 東京都 as
//! `東京 京都 都`: a word of two characters is one pair, a longer one is pairs in a row, and the last character alone
//! lets a single one be found as the beginning of a pair.

use unicode_normalization::UnicodeNormalization;

use acheron_base::tokens::ideograph;

/// More words than this in one question are not looked at.
const TERMS: usize = 64;

/// A question to the index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Query {
    /// Nothing was asked: everything matches.
    Blank,
    /// Something was asked, but no word is in it.
    Wordless,
    Words {
        /// In FTS5's language: each word must be there, or one of them.
        all: String,
        any: String,
        /// The words themselves, as a reader would look for them.
        needles: Vec<String>,
    },
}

/// The text as the index is to see it.
pub fn indexed(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 4);
    let mut chars = text.nfkc().peekable();
    while let Some(c) = chars.next() {
        if !ideograph(c) {
            // a zero would end the text for SQLite
            out.push(if c == '\0' { ' ' } else { c });
            continue;
        }
        out.push(' ');
        let mut here = c;
        while let Some(next) = chars.next_if(|next| ideograph(*next)) {
            out.extend([here, next, ' ']);
            here = next;
        }
        out.extend([here, ' ']);
    }
    out
}

/// What somebody typed, as a question. Words in double quotes belong together; a word that ends in `*` is a beginning.
/// Nothing that is typed is a fault.
pub fn query(typed: &str) -> Query {
    if typed.trim().is_empty() {
        return Query::Blank;
    }
    let mut terms = Vec::new();
    let mut needles = Vec::new();
    for (n, part) in typed.split('"').enumerate() {
        match n % 2 {
            1 => take(part, false, &mut terms, &mut needles),
            _ => part.split_whitespace().for_each(|word| take(word, word.ends_with('*'), &mut terms, &mut needles)),
        }
    }
    if terms.is_empty() {
        return Query::Wordless;
    }
    Query::Words { all: terms.join(" AND "), any: terms.join(" OR "), needles }
}

/// Adds one term, unless there is no word in it.
fn take(part: &str, beginning: bool, terms: &mut Vec<String>, needles: &mut Vec<String>) {
    if terms.len() == TERMS || !part.chars().any(char::is_alphanumeric) {
        return;
    }
    let clean: String = part.nfkc().map(|c| if c.is_control() || c == '"' { ' ' } else { c }).collect();
    let words: Vec<&str> = clean.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    needles.extend(words.iter().map(|word| (*word).to_owned()));
    let clean = clean.trim_end_matches(|c: char| !c.is_alphanumeric());
    let mut phrase = indexed(clean).trim().to_owned();
    let mut last = clean.chars().rev().take_while(|c| ideograph(*c));
    let beginning = match (last.next(), last.next()) {
        // ends in a single one: it is the first of a pair, or the last of a run
        (Some(_), None) => true,
        // ends in a run: its last character need not be the last of the run that is looked for
        (Some(end), Some(_)) => {
            phrase.truncate(phrase.len() - end.len_utf8());
            false
        }
        _ => beginning,
    };
    terms.push(format!("\"{}\"{}", phrase.trim(), if beginning { " *" } else { "" }));
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use proptest::prelude::*;

    use super::*;
    use acheron_store::Connection;

    #[test]
    fn runs_become_pairs() {
        let table = [
            ("plain words", "plain words"),
            ("東京都", " 東京 京都 都 "),
            ("東", " 東 "),
            ("Rust言語", "Rust 言語 語 "),
            ("ﾃﾞｰﾀ", " デー ータ タ "),
            ("ｆｕｌｌ", "full"),
            ("「東京」", "「 東京 京 」"),
            ("a\0b", "a b"),
        ];
        for (text, expected) in table {
            assert_eq!(indexed(text), expected, "{text}");
        }
    }

    fn check(typed: &str, expected: Expect) {
        let shown = match query(typed) {
            Query::Words { all, .. } => all,
            other => format!("{other:?}"),
        };
        expected.assert_eq(&shown);
    }

    #[test]
    fn questions_are_written_in_the_language_of_the_index() {
        check("", expect!["Blank"]);
        check("!? ...", expect!["Wordless"]);
        check("two words", expect![[r#""two" AND "words""#]]);
        check("say \"two words\" now", expect![[r#""say" AND "two words" AND "now""#]]);
        check("begin*", expect![[r#""begin" *"#]]);
        check("a OR b NOT c", expect![[r#""a" AND "OR" AND "b" AND "NOT" AND "c""#]]);
        check("name:x) NEAR(", expect![[r#""name:x" AND "NEAR""#]]);
        check("\"open", expect![[r#""open""#]]);
        check("東京", expect![[r#""東京""#]]);
        check("東京都庁", expect![[r#""東京 京都 都庁""#]]);
        check("京", expect![[r#""京" *"#]]);
        check("東京2020", expect![[r#""東京 京 2020""#]]);
    }

    /// Indexes some texts and says which of them are found.
    fn found(texts: &[&str], typed: &str) -> Vec<usize> {
        let conn = Connection::open_in_memory().unwrap();
        conn.execute_batch("CREATE VIRTUAL TABLE w USING fts5 (t, tokenize = 'unicode61 remove_diacritics 2')")
            .unwrap();
        for (n, text) in texts.iter().enumerate() {
            let row = (n as i64, indexed(text));
            conn.execute("INSERT INTO w (rowid, t) VALUES (?1, ?2)", row).unwrap();
        }
        let Query::Words { all, .. } = query(typed) else { return Vec::new() };
        let mut select = conn.prepare("SELECT rowid FROM w WHERE w MATCH ?1 ORDER BY rowid").unwrap();
        select.query_map([all], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    }

    #[test]
    fn words_are_found() {
        let texts = [
            "東京都に住む",
            "京都の寺",
            "データベースを選んだ",
            "Rust言語で書く",
            "El Niño vuelve mañana",
            "第3章節 東京2020",
            "snake_case and CamelCase",
            "我们决定使用数据库",
            "𠮷野家",
        ];
        let table: &[(&str, &[usize])] = &[
            ("東京", &[0, 5]),
            ("京都", &[0, 1]), // a pair is a pair: 東京都 contains it
            ("寺", &[1]),
            ("京", &[0, 1, 5]),
            ("データ", &[2]),
            ("データベース", &[2]),
            ("言語", &[3]),
            ("Rust言語", &[3]),
            ("rust", &[3]),
            ("nino manana", &[4]),
            ("第3章", &[5]),
            ("東京2020", &[5]),
            ("snake_case", &[6]),
            ("snak*", &[6]),
            ("camel", &[]),
            ("决定", &[7]),
            ("数据", &[7]),
            ("据数", &[]),
            ("吉野", &[]),
            ("野家", &[8]),
        ];
        for (typed, expected) in table {
            assert_eq!(found(&texts, typed), *expected, "{typed}");
        }
    }

    #[test]
    fn a_very_long_question_is_cut() {
        let typed = "word ".repeat(10_000);
        let Query::Words { all, .. } = query(&typed) else { panic!() };
        assert_eq!(all.matches("AND").count(), TERMS - 1);
    }

    proptest! {
        #[test]
        fn no_question_is_a_fault_of_syntax(typed in "[\\PC\0\n\"'*^:(){}+-]{0,40}") {
            found(&["some text"], &typed);
        }

        #[test]
        fn every_pair_of_a_run_is_found(run in "[一-三ぁ-ん]{2,8}", at in 0usize..7) {
            let chars: Vec<char> = run.chars().collect();
            let at = at % (chars.len() - 1);
            let pair: String = chars[at..at + 2].iter().collect();
            prop_assert_eq!(found(&[&format!("see {run}!")], &pair), [0]);
            prop_assert_eq!(found(&[&format!("see {run}!")], &run), [0]);
        }
    }
}
