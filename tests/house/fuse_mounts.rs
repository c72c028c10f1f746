//! Coming up and going down.

use std::os::fd::AsRawFd;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use nix::mount::{MntFlags, MsFlags, mount, umount2};

use crate::common::{GUARD, command, session, until};
use crate::workshop::Workshop;

fn mounts_at(path: &Path) -> Vec<String> {
    acheron_fuse::mounts_of("acheron").unwrap().into_iter().filter(|it| it.path == path).map(|it| it.source).collect()
}

#[test]
fn a_mount_is_listed_under_the_name_of_its_instance_and_goes_with_it() {
    let shop = Workshop::open();
    let place = shop.mount.mountpoint().to_owned();
    assert_eq!(mounts_at(&place), [shop.mount.name()]);
    assert!(shop.mount.name().starts_with("acheron-"));
    drop(shop);
    assert_eq!(mounts_at(&place), [""; 0]);
}

#[test]
fn going_down_answers_everyone_who_waits() {
    let shop = Workshop::open();
    let readers: Vec<_> = (0..20)
        .map(|_| {
            let mut cat = command(shop.root(), &["cat", "waiting.json"]);
            cat.current_dir("/").stdout(Stdio::piped()).stderr(Stdio::piped());
            cat.args([shop.root().join("waiting.json")]).spawn().unwrap()
        })
        .collect();
    until("all are parked", || shop.mount.parked() == readers.len());
    shop.mount.stop_parking();
    let late = session(shop.root(), "cat waiting.json; cat text.md");
    assert_eq!(late, "first\n! cat: waiting.json: Cannot send after transport endpoint shutdown\n");
    shop.runtime.block_on(async {
        shop.mount.unmount().await.unwrap();
        tokio::time::timeout(GUARD, shop.mount.ended()).await.unwrap().unwrap();
    });
    for reader in readers {
        let said = String::from_utf8(reader.wait_with_output().unwrap().stderr).unwrap();
        assert!(said.contains("Cannot send after transport endpoint shutdown"), "{said}");
    }
    assert_eq!(shop.mount.parked(), 0);
}

#[test]
fn who_stays_inside_does_not_keep_it_from_going_down() {
    let shop = Workshop::open();
    let mut inside = Command::new("sleep").arg("1000").current_dir(shop.root().join("many")).spawn().unwrap();
    let place = shop.mount.mountpoint().to_owned();
    shop.runtime.block_on(shop.mount.unmount()).unwrap();
    assert_eq!(mounts_at(&place), [""; 0]);
    inside.kill().unwrap();
    inside.wait().unwrap();
}

#[test]
fn who_unmounts_it_from_outside_ends_it() {
    let shop = Workshop::open();
    let status = Command::new("umount").arg("-l").arg(shop.root()).status().unwrap();
    assert!(status.success());
    shop.runtime.block_on(async { tokio::time::timeout(GUARD, shop.mount.ended()).await.unwrap().unwrap() });
}

#[test]
fn only_ones_own_mount_is_taken_away() {
    let first = Workshop::open();
    let place = first.mount.mountpoint().to_owned();
    umount2(&place, MntFlags::MNT_DETACH).unwrap();
    let (tree, runtime) = (first.tree.clone(), first.runtime.handle().clone());
    let second =
        acheron_fuse::mount(tree, crate::workshop::everybody(), &place, runtime, &acheron_fuse::Options::default())
            .unwrap();
    first.mount.detach().unwrap();
    assert_eq!(mounts_at(&place), [second.name()]);
    assert_eq!(session(&place, "cat text.md"), "first\n");
    drop(second);
    assert_eq!(mounts_at(&place), [""; 0]);
}

/// A mount whose server is gone.
fn dead_mount(place: &Path) {
    let device = std::fs::OpenOptions::new().read(true).write(true).open("/dev/fuse").unwrap();
    let options = format!("fd={},rootmode=40000,user_id=0,group_id=0", device.as_raw_fd());
    mount(Some("acheron-dead"), place, Some("fuse.acheron"), MsFlags::empty(), Some(options.as_str())).unwrap();
}

#[test]
fn a_dead_mount_is_taken_away_and_a_living_one_is_not() {
    let scratch = tempfile::tempdir().unwrap();
    let place = scratch.path().canonicalize().unwrap();
    dead_mount(&place);
    dead_mount(&place);
    assert!(session(Path::new("/"), &format!("ls {}", place.display())).contains("not connected"));
    assert_eq!(acheron_fuse::prepare_mountpoint(&place, &acheron_fuse::Options::default()).unwrap(), place);
    assert_eq!(mounts_at(&place), [""; 0]);

    let shop = Workshop::open();
    let error = acheron_fuse::prepare_mountpoint(shop.root(), &acheron_fuse::Options::default()).unwrap_err();
    assert!(error.message.contains("already"), "{error}");
    assert_eq!(session(shop.root(), "cat text.md"), "first\n");
}

#[test]
fn what_is_mounted_inside_outlives_a_change_of_its_name() {
    let shop = Workshop::open();
    let on = shop.mount.mountpoint().join("many");
    shop.mount.protect("/many");
    mount(Some("none"), &on, Some("tmpfs"), MsFlags::empty(), None::<&str>).unwrap();
    std::fs::write(on.join("mine"), "kept").unwrap();
    for _ in 0..10 {
        let many = acheron_vfs::Dir::lookup(&*shop.knobs.root, "many").unwrap();
        shop.knobs.root.put("many", many);
        assert_eq!(session(shop.root(), r#"echo '{"op":"echo"}' > control/echo.json; cat many/mine"#), "kept\\\n");
    }
    umount2(&on, MntFlags::MNT_DETACH).unwrap();
    shop.mount.unprotect("/many");
    assert_eq!(session(shop.root(), "cat many/007"), "7\n");
}

#[test]
fn every_mount_ends_for_good() {
    for _ in 0..20 {
        let shop = Workshop::open();
        std::fs::read(shop.root().join("text.md")).unwrap();
        shop.runtime.block_on(async {
            tokio::time::timeout(Duration::from_secs(60), shop.mount.unmount()).await.unwrap().unwrap();
        });
    }
}
