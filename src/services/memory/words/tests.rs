use expect_test::{Expect, expect};
use proptest::prelude::*;

use super::*;
use acheron_store::Connection;

fn check(typed: &str, expected: Expect) {
    let shown = match query(typed) {
        WordQuery::Words { terms, .. } => terms.join(" AND "),
        other => format!("{other:?}"),
    };
    expected.assert_eq(&shown);
}

#[test]
fn questions_are_written_in_the_language_of_the_index() {
    check("", expect!["Blank"]);
    check("!? ...", expect!["Wordless"]);
    check("two words", expect![[r#""two" AND "word""#]]);
    check("say \"two words\" now", expect![[r#""sai" AND "two word" AND "now""#]]);
    check("begin*", expect![[r#""begin" *"#]]);
    check("a OR b NOT c", expect![[r#""a" AND "or" AND "b" AND "not" AND "c""#]]);
    check("name:x) NEAR(", expect![[r#""name x" AND "near""#]]);
    check("\"open", expect![[r#""open""#]]);
    check("東京", expect![[r#""東京""#]]);
    check("東京都庁", expect![[r#""東京 京都 都庁""#]]);
    check("京", expect![[r#""京" *"#]]);
    check("東京2020", expect![[r#""東京 京 2020""#]]);
}

/// Indexes some texts and says which of them are found.
fn found(texts: &[&str], typed: &str) -> Vec<usize> {
    let conn = Connection::open_in_memory().unwrap();
    conn.execute_batch("CREATE VIRTUAL TABLE w USING fts5 (t, tokenize = 'unicode61 remove_diacritics 2')").unwrap();
    for (n, text) in texts.iter().enumerate() {
        let row = (n as i64, indexed(text));
        conn.execute("INSERT INTO w (rowid, t) VALUES (?1, ?2)", row).unwrap();
    }
    let WordQuery::Words { terms, .. } = query(typed) else { return Vec::new() };
    let all = terms.join(" AND ");
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
        ("camel", &[6]),
        ("CAMELCASE", &[6]),
        ("cases", &[6]),
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
    let WordQuery::Words { terms, .. } = query(&typed) else { panic!() };
    let all = terms.join(" AND ");
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
