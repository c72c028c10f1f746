use proptest::prelude::*;

use super::*;

/// The move in one line, or the refusal's sentence.
fn shown(text: &str) -> String {
    match parse(text, &[("SAY".into(), Header::Ask)]) {
        Ok(Input::Move(found)) => {
            let mut line = format!("{} {:?} {}", found.header.name(), found.intent, found.body);
            for (name, value) in [
                ("risk", found.risk.map(|risk| format!("{risk:?}"))),
                ("note", found.intent_note),
                ("domain", found.domain.map(|domain| format!("{domain:?}"))),
                ("voice", found.voice),
                ("cast", found.cast.then(|| "yes".into())),
            ] {
                if let Some(value) = value {
                    line.push_str(&format!(" | {name}={value}"));
                }
            }
            line
        }
        Ok(Input::Control(control)) => format!("{control:?}"),
        Err(refusal) => format!("refused: {}", refusal.sentence),
    }
}

#[test]
fn the_rows_of_input_and_control() {
    for (row, input, expected) in [
        ("1", "Open the door", "refused: the input must begin with a header at the start of the line; perhaps [ACT]"),
        ("2", "[ACT]{Open the door}", "ACT Act Open the door"),
        ("3", "[LOOK] the sky", "LOOK Inv the sky"),
        ("4", "[OOC] What is the DC?", "OOC Ooc What is the DC?"),
        ("5", "<OOC> what is Heat", "OOC Ooc what is Heat"),
        ("6", "[行动]{查门}", "ACT Act 查门"),
        ("7", "[talk]\"hi\"", "ASK Talk hi"),
        ("8", "【LOOK】｛the sky｝", "LOOK Inv the sky"),
        ("9", "[DANCE]{x}", "refused: unknown header [DANCE]"),
        ("9a", "[LOK]{x}", "refused: unknown header [LOK]; the nearest is [LOOK]"),
        ("10", "hello [ACT]{x}", "refused: the input must begin with a header at the start of the line; perhaps [ACT]"),
        ("11", "[ASK]\"hi\" [LOOK]{sky}", "refused: one tag per input: send the second header as an input of its own"),
        ("11a", "[ASK] hi\n[LOOK] sky", "refused: one tag per input: send the second header as an input of its own"),
        ("12", "[ACT]{inner: scholar}", "ACT Mind inner: scholar | voice=scholar"),
        ("13", "[行动]{内心：创伤}", "ACT Mind 内心：创伤 | voice=trauma"),
        (
            "13a",
            "[ACT]{inner: cook}",
            "refused: no inner voice `cook`; there are scholar, trauma, doubt, weariness, alertness, emotion, holy_spirit",
        ),
        ("14", "[ACT]{pick lock} --risk mid", "ACT Act pick lock | risk=Mid"),
        ("15", "[ACT]{x} --risk huge", "refused: risk must be low|mid|high"),
        ("16", "[ACT]{x} --intent \"Find proof\"", "ACT Act x | note=Find proof"),
        ("17", "@cb [FIGHT]{strike}", "FIGHT Combat strike | domain=Combat"),
        (
            "18",
            "@iv[CAST]{light} --risk low --intent “see”",
            "CAST Act light | risk=Low | note=see | domain=Invest | cast=yes",
        ),
        ("19", "[ACT]{}", "refused: [ACT] has an empty body"),
        ("19a", "[ACT]", "refused: [ACT] has an empty body"),
        ("20", "[ACT]{unclosed", "refused: the body that `{` opens at column 6 is not closed"),
        ("20a", "[ACT]{a {b} c}", "ACT Act a {b} c"),
        ("20b", "[ACT]{a} now", "refused: `now` follows the body; only --risk and --intent may"),
        ("20c", "[SAY]{hi}", "ASK Talk hi"),
        ("22", "<initialize>", "Initialize"),
        ("23", "<初始化>", "Initialize"),
        ("24", "<new campaign campaign_0002>", "NewCampaign(\"campaign_0002\")"),
        ("24a", "<新战役 c2>", "NewCampaign(\"c2\")"),
        ("24b", "<new campaign campaigns/c2>", "NewCampaign(\"c2\")"),
        ("28", "<switch campaigns/old>", "SwitchCampaign(\"old\")"),
        ("28a", "<切换战役 campaigns/old>", "SwitchCampaign(\"old\")"),
        (
            "28b",
            "<switch campaign>",
            "refused: <switch campaign> is not a control instruction; there are <continue>, <initialize>, <play on>, <new campaign NAME> and <switch campaign NAME>",
        ),
        ("31", "<continue>", "Continue"),
        ("32", "<继续>", "Continue"),
        ("32a", "<热启动>", "Continue"),
        ("32b", "<Hot  Start>", "Continue"),
        (
            "33",
            "<fly>",
            "refused: <fly> is not a control instruction; there are <continue>, <initialize>, <play on>, <new campaign NAME> and <switch campaign NAME>",
        ),
    ] {
        assert_eq!(shown(input), expected, "row {row}: {input}");
    }
}

#[test]
fn row_21_a_summary_has_at_most_twenty_characters() {
    for body in ["x".repeat(60), "门".repeat(60)] {
        let Ok(Input::Move(found)) = parse(&format!("[ACT]{{{body}}}"), &[]) else { panic!() };
        assert_eq!(found.action_summary.chars().count(), 20);
    }
}

#[test]
fn a_book_is_refused_before_it_is_read() {
    let book = format!("[ACT]{}", "[".repeat(1 << 20));
    assert_eq!(parse(&book, &[]).unwrap_err().sentence, "the input is longer than 16000 bytes");
}

#[test]
fn a_refusal_names_the_headers_and_one_example() {
    let block = parse("look at the gate", &[]).unwrap_err().render();
    expect_test::expect![[r#"
        [Error] the input must begin with a header at the start of the line; perhaps [LOOK]
        Headers: [ACT] [LOOK] [ASK] [FIGHT] [CAST] [MANAGE] [OOC]
        Example: [LOOK]{look at the gate}
    "#]]
    .assert_eq(&block);
}

proptest! {
    #[test]
    fn no_text_is_too_strange_to_parse(text in "[\\[\\]{}<>\"“”【】@ -]{0,6}\\PC{0,40}[\\[\\]{}<>\"--]{0,6}\\PC{0,20}") {
        let _ = parse(&text, &[]);
    }

    #[test]
    fn what_is_in_braces_comes_out_of_them(body in "[a-z门 ]{1,40}") {
        prop_assume!(!body.trim().is_empty());
        let Ok(Input::Move(found)) = parse(&format!("[ACT]{{{body}}}"), &[]) else { panic!() };
        prop_assert_eq!(found.body, body.trim());
    }
}
