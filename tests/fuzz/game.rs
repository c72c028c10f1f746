//! The game master's texts: what a player types, deltas, rules, tables.

use crate::driver::{Kind, Target};
use crate::kind;
use acheron_dm::delta::{self, apply};
use acheron_dm::input::{self, Header, Input};
use acheron_dm::mechanics::{combat, governance, maps, social, tables};
use acheron_dm::{index, md, rule, session};

/// What a player types.
pub fn dm_input() -> Target {
    const WORDS: &[&str] = &[
        "[ACT]",
        "[LOOK]{",
        "【观察】",
        "[ASK]",
        "<ooc>",
        "<continue>",
        "<new campaign ",
        "＜",
        "｛",
        "｝",
        "“",
        "”",
        " --risk high",
        " --intent \"x\"",
        "@sc",
        "＠so",
        "inner: doubt",
        "内心：",
        "@npc_a",
        "[HOWL]",
    ];
    fn run(input: &[u8]) -> Kind {
        let text = String::from_utf8_lossy(input);
        let extra = [("howl".to_owned(), Header::Act)];
        match input::parse(&text, &extra) {
            Ok(Input::Move(taken)) => {
                assert!(!taken.body.trim().is_empty() && taken.body.chars().count() <= 2000);
                assert!(taken.action_summary.chars().count() <= 20 && text.contains(&taken.body));
                kind(taken.header.name()) ^ u64::from(taken.risk.is_some()) ^ (u64::from(taken.voice.is_some()) << 1)
            }
            Ok(Input::Control(control)) => kind(&format!("{control:?}").chars().take(8).collect::<String>()),
            Err(refusal) => {
                assert!(refusal.render().len() < 1000 && refusal.render().starts_with("[Error]"));
                kind(&refusal.sentence)
            }
        }
    }
    Target { name: "dm_input", words: WORDS, run }
}

/// The block that changes a save.
pub fn archive_delta() -> Target {
    const WORDS: &[&str] = &[
        "<!-- ARCHIVE_DELTA\n",
        "files:\n",
        "  - path: a.md\n",
        "    append: |\n",
        "    patch: |\n",
        "      x\n",
        "    create: true\n",
        "    base: 12ab\n",
        "-->\n",
        "risk_flag: a\n",
        "  ",
        "\n\n",
        "campaigns/c1/",
        "sessions/session_001.md",
    ];
    fn run(input: &[u8]) -> Kind {
        let text = String::from_utf8_lossy(input);
        match delta::text::parse(&text) {
            Ok(parsed) => {
                assert_eq!(
                    delta::text::parse(&delta::text::render(&parsed)).as_ref(),
                    Ok(&parsed),
                    "rendered and read"
                );
                for item in &parsed.items {
                    if let Ok(path) = apply::path(&item.path, "c1") {
                        assert!(!path.split('/').any(|part| matches!(part, "" | "." | "..")), "{path}");
                    }
                }
                parsed.items.len() as u64 * 4 + parsed.risk_flags.len() as u64
            }
            Err(error) => kind(&error.message),
        }
    }
    Target { name: "archive_delta", words: WORDS, run }
}

/// Conditions and effects, as cartridges write them.
pub fn dm_rule() -> Target {
    const WORDS: &[&str] = &[
        "@a",
        "!",
        "&",
        ";",
        "quest @q open",
        "clock tide full",
        "clue @c",
        "at @p",
        ">=",
        "take @x",
        "Heat-9223372036854775808 (x)",
        "time 10",
        "status @x gone",
        "(why)",
        "move @p",
    ];
    fn run(input: &[u8]) -> Kind {
        let text = String::from_utf8_lossy(input);
        let told = |error: &acheron_base::Error| {
            assert!(error.message.len() < 4 * text.len() + 200);
            kind(&error.message)
        };
        let condition = rule::Condition::parse(&text).map_or_else(|error| told(&error), |it| it.0.len() as u64);
        let effects = rule::effects(&text).map_or_else(|error| told(&error), |it| it.len() as u64 * 64);
        condition ^ effects
    }
    Target { name: "dm_rule", words: WORDS, run }
}

/// The Markdown of cartridges and saves: sections, tables, maps, rules, sessions.
pub fn dm_table() -> Target {
    const WORDS: &[&str] = &[
        "| a | b |\n",
        "|---|---|\n",
        "## Clocks\n",
        "# Turn 1\n",
        "- a: b\n",
        "| 1-2 | x |\n",
        "\\|",
        "```\n",
        "d6",
        "{\"nodes\":[",
        "\"edges\":",
    ];
    fn run(input: &[u8]) -> Kind {
        let text = String::from_utf8_lossy(input);
        // each input is for one of the readers, or all this would take too long
        match input.iter().fold(0u8, |sum, byte| sum.wrapping_add(*byte)) % 4 {
            0 => {
                for turn in session::turns(&text) {
                    assert!(text.contains(turn));
                }
                if let Ok(patched) = md::patch_section(&text, "## Clocks\n\nnone", true) {
                    let section = md::section(&patched, "Clocks").expect("what was patched in is there");
                    assert!(section.contains("none"), "{section:?}");
                }
                md::fields(&text).count() as u64 % 64
            }
            1 => {
                index::read(&text);
                100 + md::tables(&text).iter().map(|table| table.rows.len() as u64 + 1).sum::<u64>()
            }
            2 => {
                let (read, faults) = tables::read("t.md", &text);
                1000 + read.len() as u64 * 8 + faults.len().min(7) as u64
            }
            _ => {
                let rules = [
                    combat::CombatRules::read(&text).is_ok(),
                    social::SocialRules::read(&text).is_ok(),
                    governance::GovernanceRules::read(&text).is_ok(),
                ];
                let map = maps::read("m.json", &text);
                if let Ok(map) = &map {
                    map.faults(|_| true);
                    map.path("a", "b", |_| true);
                }
                rules.iter().chain([&map.is_ok()]).fold(1 << 20, |kinds, it| kinds * 2 + u64::from(*it))
            }
        }
    }
    Target { name: "dm_table", words: WORDS, run }
}
