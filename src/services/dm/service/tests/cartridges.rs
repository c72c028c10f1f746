//! Cartridges that are edited while they are played.

use super::*;
use acheron_dm::tools::Call;

#[tokio::test]
async fn an_edited_cartridge_is_there_in_the_next_turn() {
    let (root, session, files) = begun(Arc::new(NoNarrator)).await;
    let index = "cartridges/brinewick/locations/LOCATION_INDEX.md";
    let add = json!({"cartridge_path": "cartridges/brinewick", "index_path": index, "handle": "@old_mill", "aliases": ["mill"]});
    let add = vec![Call { name: "register_handle".into(), arguments: add }];
    session.tools(None, "AUTHOR", None, add, true).await.unwrap();
    assert!(read(&files, index).await.contains("@old_mill"));
    // By an editor, past the service: the bytes are there at once, the name of a new file after the next turn.
    let folder = root.path().join("cartridges/brinewick");
    std::fs::write(folder.join("lore/new.md"), "# New\n").unwrap();
    std::fs::write(folder.join(".DM_SECRETS.md"), "the butler\n").unwrap();
    let page = std::fs::read_to_string(folder.join("CARTRIDGE.md")).unwrap();
    std::fs::write(folder.join("CARTRIDGE.md"), format!("{page}\nedited\n")).unwrap();
    assert!(read(&files, "cartridges/brinewick/CARTRIDGE.md").await.ends_with("edited\n"));
    say(&files, "c1", "[LOOK]{around}").await.unwrap();
    assert_eq!(read(&files, "cartridges/brinewick/lore/new.md").await, "# New\n");
    let Node::Dir(cartridge) = find(&files, "cartridges/brinewick") else { panic!() };
    assert!(cartridge.lookup(".DM_SECRETS.md").is_none());
    // Another version than the campaign is locked to is not played.
    std::fs::write(folder.join("CARTRIDGE.md"), page.replace("version: 1.0", "version: 2.0")).unwrap();
    let refused = say(&files, "c1", "[LOOK]{around}").await.unwrap_err();
    assert!(refused.message.contains("version_lock mismatch"), "{refused}");
}

#[tokio::test]
async fn a_changed_map_is_noted_in_the_journal_and_the_replay_stays_equal() {
    let (_root, session, files) = begun(Arc::new(NoNarrator)).await;
    say(&files, "c1", "[LOOK]{around}").await.unwrap();
    assert_eq!(session.campaigns().replay("c1").unwrap(), (3, None));
    let link = || {
        let change = json!({"link": {"from": "@lantern_quay", "to": "@reed_path", "kind": "trail", "minutes": 3}});
        session.change_map(None, "brinewick".into(), serde_json::from_value(change).unwrap(), "a plank was laid".into())
    };
    link().await.unwrap();
    let noted = session.campaigns().replay("c1").unwrap_err();
    assert!(noted.message.contains("the next move notes"), "{noted}");
    say(&files, "c1", "[ACT]{go to the reed path}").await.unwrap();
    assert_eq!(session.campaigns().replay("c1").unwrap().1, None);
    let again = link().await.unwrap_err();
    assert!(again.message.contains("two ways of kind trail"), "{again}");
    session.new_campaign(&ChangedBy::no_call(), "c2", "brinewick", Some(8)).await.unwrap();
    assert_eq!(session.campaigns().replay("c2").unwrap(), (1, None), "a campaign that is made later begins with it");
}
