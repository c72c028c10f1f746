use super::*;

const SESSION: &str = "sessions/session_x.md";

fn files() -> Files {
    let file = |path: &str, text: &str| (path.to_owned(), text.to_owned());
    Files::from([
        file(SESSION, "# Session\n"),
        file("HOT_PACK.json", "{\"spine\": [], \"context\": {\"guide_shown\": 0, \"t\": \"x\"}}"),
        file("STATE_PANEL.json", "{\"time\": \"x\", \"location\": \"y\", \"indicators\": {}}"),
        file("WORLD_STATE.md", "# World\n\n## Clocks\n\nold\n\n## Rest\n\nkept\n"),
        file("sessions/CURRENT_SESSION.md", "sessions/session_x.md\n"),
    ])
}

/// What a delta of these items comes to: the paths that change, or the refusal.
fn shown(items: Vec<DeltaItem>, author: Author) -> String {
    match changes(&Delta { items, ..Delta::default() }, &files(), "c1", SESSION, author) {
        Ok(changes) => changes.iter().map(Change::path).collect::<Vec<_>>().join(" "),
        Err(fault) => format!("{}: {}", fault.code.name(), fault.message),
    }
}

#[test]
fn the_rows_of_the_delta() {
    let append = || DeltaItem::append(SESSION, "## Decision: x");
    let pack = || DeltaItem::patch("HOT_PACK.json", "{\"context\":{\"guide_shown\":1}}");
    let stale = DeltaItem { base: Some("0123456789abcdef".into()), ..pack() };
    for (row, items, expected) in [
        ("86", vec![append(), pack()], "sessions/session_x.md HOT_PACK.json"),
        ("86a", vec![DeltaItem::append("campaigns/c1/sessions/session_x.md", "x")], "sessions/session_x.md"),
        (
            "91",
            vec![DeltaItem::patch(SESSION, "## Decision: y")],
            "forbidden: sessions/session_x.md is a session, which takes appends only",
        ),
        (
            "91a",
            vec![DeltaItem::append("sessions/session_old.md", "y")],
            "forbidden: sessions/session_old.md is not the current session",
        ),
        (
            "92",
            vec![DeltaItem::append("../../etc/passwd", "x")],
            "forbidden: `../../etc/passwd` leads out of the campaign",
        ),
        ("92a", vec![DeltaItem::append("/etc/x", "x")], "forbidden: `/etc/x` leads out of the campaign"),
        (
            "93",
            vec![DeltaItem::append(".kernel/journal.ndjson", "x")],
            "forbidden: .kernel/journal.ndjson is not written in a turn",
        ),
        (
            "94",
            vec![DeltaItem::append("cartridges/b/lore/x.md", "x")],
            "forbidden: cartridges/b/lore/x.md is not the campaign's: a turn does not write there",
        ),
        ("95", vec![append(), DeltaItem::patch("nope.md", "## x"), pack()], "not_found: there is no nope.md to patch"),
        (
            "96",
            vec![DeltaItem::patch("STATE_PANEL.json", "{\"time\":null}")],
            "invalid_payload: STATE_PANEL.json would lack `time`",
        ),
        (
            "96a",
            vec![DeltaItem::patch("STATE_PANEL.json", "{\"inventory\":[1]}")],
            "invalid_payload: STATE_PANEL.json: `inventory` must be an array of strings",
        ),
        (
            "98",
            vec![DeltaItem::append("STATE_PANEL.json", "x")],
            "invalid_payload: STATE_PANEL.json is JSON: it is patched, not appended to",
        ),
        (
            "100",
            vec![DeltaItem::patch("WORLD_STATE.md", "## Weather\nfog")],
            "not_found: there is no heading `Weather` to patch",
        ),
        ("100a", vec![DeltaItem::section("WORLD_STATE.md", "## Weather\nfog")], "WORLD_STATE.md"),
        ("102", vec![stale], "conflict: HOT_PACK.json changed since the delta was made (base 0123456789abcdef)"),
        (
            "103",
            vec![DeltaItem::patch("sessions/CURRENT_SESSION.md", "a\nb")],
            "invalid_payload: CURRENT_SESSION.md is one line",
        ),
    ] {
        assert_eq!(shown(items, Author::Kernel), expected, "row {row}");
    }
    assert_eq!(
        shown(vec![pack()], Author::Narrator),
        "forbidden: HOT_PACK.json is written by the kernel, not by a narrator: that writes characters/NPCs_active/<name>.md and notes/<name>.md"
    );
    assert_eq!(
        shown(vec![DeltaItem::append("characters/NPCs_active/mira.md", "# Mira")], Author::Narrator),
        "characters/NPCs_active/mira.md"
    );
}

#[test]
fn rows_97_and_99_a_patch_leaves_the_rest_alone() {
    let delta = Delta {
        items: vec![
            DeltaItem::patch("HOT_PACK.json", "{\"context\":{\"guide_shown\":1}}"),
            DeltaItem::patch("WORLD_STATE.md", "## Clocks\n\nnew"),
        ],
        ..Delta::default()
    };
    let made = changes(&delta, &files(), "c1", SESSION, Author::Kernel).unwrap();
    let Change::Write { text, .. } = &made[0] else { panic!() };
    assert_eq!(
        serde_json::from_str::<serde_json::Value>(text).unwrap()["context"],
        serde_json::json!({"guide_shown": 1, "t": "x"})
    );
    let Change::Write { text, .. } = &made[1] else { panic!() };
    assert_eq!(text, "# World\n\n## Clocks\n\nnew\n\n## Rest\n\nkept\n");
}

#[test]
fn row_87_a_move_without_a_session_append_is_refused() {
    let only_pack = Delta { items: vec![DeltaItem::patch("HOT_PACK.json", "{}")], ..Delta::default() };
    assert!(complete(&only_pack, SESSION).unwrap_err().message.starts_with("required set incomplete"));
    let only_session = Delta { items: vec![DeltaItem::append(SESSION, "x")], ..Delta::default() };
    assert!(complete(&only_session, SESSION).is_err());
}
