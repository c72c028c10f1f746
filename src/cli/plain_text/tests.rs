use super::*;

#[test]
fn what_an_agent_says_gives_no_orders_to_a_terminal() {
    let said = plain("a\tb\n\u{1b}]52;c;eA==\u{7}\u{9b}2J\r\u{7f}é");
    assert_eq!(said, "a\tb\n\\u{1b}]52;c;eA==\\u{7}\\u{9b}2J\\r\\u{7f}é");
    assert_eq!(on(false, "\u{202e}"), "\u{202e}");
}

#[test]
fn what_an_agent_says_does_not_turn_the_direction_of_writing() {
    let said = plain("{\"say\":\"\u{202e}cod.exe\u{2066}\u{200f}\u{61c}ש\"}");
    assert_eq!(said, "{\"say\":\"\\u202ecod.exe\\u2066\\u200f\\u061cש\"}");
    let value: serde_json::Value = serde_json::from_str(&said).unwrap();
    assert!(value["say"].as_str().unwrap().starts_with('\u{202e}'), "it is the same JSON");
}

#[test]
fn what_cannot_be_seen_is_shown() {
    assert_eq!(plain("rm\u{200b} \u{feff}x\u{e0041}"), "rm\\u200b \\ufeffx\\udb40\\udc41");
    assert_eq!(plain("\u{645}\u{6cc}\u{200c}\u{62e}\u{648}"), "\u{645}\u{6cc}\u{200c}\u{62e}\u{648}");
}

#[test]
fn an_entry_of_the_log_is_one_entry_and_turns_nothing() {
    let entry = log_entry("INFO a \u{202e}name\nINFO all is well\u{1b}[2J\n", false);
    assert_eq!(entry, "INFO a \\u202ename\n    INFO all is well\\u{1b}[2J\n");
    assert_eq!(log_entry("\u{1b}[2mINFO\u{1b}[0m \u{7}\n", true), "\u{1b}[2mINFO\u{1b}[0m \\u{7}\n");
}
