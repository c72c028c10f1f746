//! The files of a campaign that players read.

use super::*;

#[tokio::test]
async fn the_files_that_one_is_told_to_read_are_in_the_tree() {
    let (root, session, files) = begun(Arc::new(NoNarrator)).await;
    say(&files, "c1", "[LOOK]{around}").await.unwrap();
    for path in [
        "HOT_PACK.json",
        "PLAYER_PROFILE.md",
        "OBJECT_INDEX.json",
        "STATE_PANEL.json",
        "WORLD_STATE.md",
        "GOVERNANCE_PANEL.md",
        "index.md",
        "sessions/CURRENT_SESSION.md",
        "sessions/SESSION_INDEX.md",
        "sessions/session_2026-11-16_ann.md",
        "characters/PCs/pc_current.md",
        "characters/PCs/pet_current.md",
        "characters/NPCs_active/npc_roster.md",
        "quests/QUEST_LOG.md",
        "clues/CLUE_LOG.json",
    ] {
        let disk = std::fs::read_to_string(root.path().join("campaigns/c1").join(path)).unwrap();
        let view = acheron_dm::players::view(path, &disk).unwrap();
        assert_eq!(read(&files, &format!("campaigns/c1/files/{path}")).await, view, "{path}");
    }
    let Node::Dir(dir) = find(&files, "campaigns/c1/files") else { panic!() };
    for secret in [".DM_BLUEPRINT.md", ".DM_PLANNER.md", ".kernel", "CAMPAIGN.md", "Writing", "notes"] {
        assert!(dir.lookup(secret).is_none(), "{secret}");
    }
    let Node::File(page) = find(&files, "campaigns/c1/files/index.md") else { panic!() };
    let written = match page.open(&Caller::operator(), Open::BOTH) {
        Ok(handle) => handle.write(0, b"x").wait().await,
        Err(fault) => Err(fault),
    };
    assert!(written.is_err(), "it is read-only");
    // Who is filed later is shown later.
    let delta =
        "<!-- ARCHIVE_DELTA\nfiles:\n  - path: characters/NPCs_active/mira.md\n    append: |\n      # Mira\n-->";
    let act = Act::Turn { input: "[LOOK]{around}".into(), proposal: Some(json!({"delta": delta})) };
    session.act(&ChangedBy::no_call(), "c1", act).await.unwrap();
    assert_eq!(read(&files, "campaigns/c1/files/characters/NPCs_active/mira.md").await, "# Mira\n");
    let Node::Dir(people) = find(&files, "campaigns/c1/files/characters/NPCs_active") else { panic!() };
    assert!(people.lookup("npc_roster.md").is_some());
}
