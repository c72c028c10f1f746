use std::path::Path;

use super::super::Campaigns;
use super::*;

const AT: &str = "2026-11-16T10:00:00Z";

fn campaigns(root: &Path) -> Campaigns {
    Campaigns::open(ConfinedDir::open(root).unwrap(), Default::default())
}

/// A root with one campaign, begun and one turn old.
fn begun() -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    let campaigns = campaigns(root.path());
    campaigns.new_campaign(&ChangedBy::no_call(), "c1", "brinewick", 7, AT, &ActResult::default()).unwrap();
    let (save, world) = campaigns.play("c1").unwrap();
    let answers = serde_json::from_str(r#"{"preset": "Standard Adventure", "pc_name": "Ann"}"#).unwrap();
    save.act(&ChangedBy::no_call(), &world, &Act::Init { answers: Box::new(answers) }, AT).unwrap();
    save.act(&ChangedBy::no_call(), &world, &turn("[LOOK]{around}"), AT).unwrap();
    root
}

fn turn(input: &str) -> Act {
    Act::Turn { input: input.into(), proposal: None }
}

fn copy(from: &Path) -> tempfile::TempDir {
    let to = tempfile::tempdir().unwrap();
    for entry in ConfinedDir::open(from).unwrap().walk("").unwrap().into_iter().filter(|entry| entry.kind == Kind::File)
    {
        let path = to.path().join(&entry.name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::copy(from.join(&entry.name), path).unwrap();
    }
    to
}

fn files(save: &Save) -> Files {
    let paths = save.paths().unwrap().into_iter().filter(|path| path != LOCK);
    paths.map(|path| (path.clone(), save.read(&path).unwrap().unwrap())).collect()
}

#[test]
fn row_101_a_crash_at_any_instant_leaves_all_of_a_turn_or_none() {
    let base = begun();
    let act = turn("[ACT]{leap from post to post} --risk high");
    let (before, after) = {
        let before = files(&campaigns(base.path()).campaign("c1").unwrap());
        let played = copy(base.path());
        let (save, world) = campaigns(played.path()).play("c1").unwrap();
        save.act(&ChangedBy::no_call(), &world, &act, AT).unwrap();
        (before, files(&save))
    };
    assert_ne!(before, after);
    let steps = {
        let (save, world) = campaigns(base.path()).play("c1").unwrap();
        act::whole(save.context(&world, AT), &act, 3).unwrap().1.len()
    };
    // Before the plan stands there is nothing; then each number of changes made; then half an append.
    for made in 0..=steps {
        for torn in [false, true] {
            let root = copy(base.path());
            let (save, world) = campaigns(root.path()).play("c1").unwrap();
            let (_, changes) = act::whole(save.context(&world, AT), &act, 3).unwrap();
            let pending = save.plan(changes).unwrap();
            save.write_plan(&ChangedBy::no_call(), &pending, Vec::new(), &ActResult::default()).unwrap();
            pending[..made].iter().for_each(|one| save.make_one(one).unwrap());
            if let (true, next) = (torn, pending.get(made)) {
                let Some(PendingChange { change: Change::Append { path, text }, .. }) = next else { continue };
                save.place.append(path, &text.as_bytes()[..text.len() / 2]).unwrap();
            }
            drop(save);
            let (save, _) = campaigns(root.path()).play("c1").unwrap();
            assert_eq!(files(&save), after, "after {made} of {steps} changes, torn {torn}");
        }
    }
    let root = copy(base.path());
    let save = campaigns(root.path()).campaign("c1").unwrap();
    save.place.write(".kernel/half-a-plan", b"[{").unwrap();
    save.place.remove(".kernel/half-a-plan").unwrap();
    assert_eq!(files(&save), before, "a plan that does not stand is nothing");
}

#[test]
fn one_plays_and_the_other_is_told_busy() {
    let root = begun();
    let (save, world) = campaigns(root.path()).play("c1").unwrap();
    let held = save.lock().unwrap();
    let (other, _) = campaigns(root.path()).play("c1").unwrap();
    let refused = other.act(&ChangedBy::no_call(), &world, &turn("[LOOK]{around}"), AT).unwrap_err();
    assert_eq!((refused.code, refused.message.as_str()), (Code::Busy, "campaign c1 is being played by someone else"));
    drop(held);
    other.act(&ChangedBy::no_call(), &world, &turn("[LOOK]{around}"), AT).unwrap();
}

#[test]
fn a_reader_that_comes_while_an_act_is_made_waits_for_it() {
    let root = begun();
    let (save, _) = campaigns(root.path()).play("c1").unwrap();
    let held = save.lock().unwrap();
    save.place.write(PENDING, b"[]").unwrap();
    let reader = std::thread::spawn({
        let root = root.path().to_owned();
        move || campaigns(&root).campaign("c1").map(|save| save.id)
    });
    std::thread::sleep(std::time::Duration::from_millis(50));
    save.place.remove(PENDING).unwrap();
    drop(held);
    assert_eq!(reader.join().unwrap().unwrap(), "c1");
}

#[test]
fn a_replay_of_the_journal_gives_the_bytes_on_disk() {
    let root = begun();
    let (save, world) = campaigns(root.path()).play("c1").unwrap();
    for input in ["[ASK]{Jun}", "[ACT]{go to the inn}", "[MANAGE]{rest}", "[ACT]{steal a ham} --risk high"] {
        save.act(&ChangedBy::no_call(), &world, &turn(input), AT).unwrap();
    }
    save.act(&ChangedBy::no_call(), &world, &Act::Undo, AT).unwrap();
    save.act(&ChangedBy::no_call(), &world, &Act::Load, AT).unwrap();
    assert_eq!(campaigns(root.path()).replay("c1").unwrap(), (8, None));
    save.place.write("WORLD_STATE.md", b"# forged\n").unwrap();
    assert_eq!(campaigns(root.path()).replay("c1").unwrap().1.as_deref(), Some("WORLD_STATE.md"));
}

#[test]
fn a_refused_act_leaves_every_byte() {
    let root = begun();
    let (save, world) = campaigns(root.path()).play("c1").unwrap();
    let before = files(&save);
    for input in ["look", "[ACT]{@nobody}", "[FLY]{x}", "[ACT]{}"] {
        save.act(&ChangedBy::no_call(), &world, &turn(input), AT).unwrap_err();
        assert_eq!(files(&save), before, "{input}");
    }
    save.act(&ChangedBy::no_call(), &world, &turn("[OOC] what is a DC"), AT).unwrap();
    assert_eq!(files(&save), before, "a question changes nothing");
}

#[test]
fn row_92_a_link_out_of_the_campaign_is_not_followed() {
    let root = begun();
    let outside = root.path().join("outside.md");
    std::fs::write(&outside, "mine").unwrap();
    let page = root.path().join("campaigns/c1/WORLD_STATE.md");
    std::fs::remove_file(&page).unwrap();
    std::os::unix::fs::symlink(&outside, &page).unwrap();
    let (save, world) = campaigns(root.path()).play("c1").unwrap();
    for input in ["[LOOK]{around}", "[LOOK]{around}", "[LOOK]{around}", "[LOOK]{around}", "[LOOK]{around}"] {
        let _ = save.act(&ChangedBy::no_call(), &world, &turn(input), AT);
    }
    assert_eq!(std::fs::read_to_string(&outside).unwrap(), "mine");
}
