//! A server whose disk is full.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use bytes::Bytes;

use super::joined;
use crate::Condition;
use crate::test_server::{NatsServer, server};
use acheron_fabric::subjects;

/// A small disk in memory, unmounted with this.
struct SmallDisk(PathBuf);

fn mount(words: &[&str]) {
    let output = Command::new("mount").args(words).output().unwrap();
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        _ = Command::new("umount").arg("-l").arg(&self.0).output();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_whose_disk_is_full_loses_nothing_that_it_acknowledged() {
    if !nix::unistd::geteuid().is_root() {
        eprintln!("only root can mount a small disk");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().join("store");
    std::fs::create_dir(&store).unwrap();
    mount(&["-t", "tmpfs", "-o", "size=16m", "tmpfs", store.to_str().unwrap()]);
    let disk = SmallDisk(store.clone());
    let mut server = NatsServer::placed(dir, &server(), &store, ("127.0.0.1", None), "max_file_store: 1GB", "");
    let link = joined(&server, "styx").await;
    let (subject, body) = (subjects::mail("styx", "styx", "charon"), Bytes::from(vec![b'x'; 100_000]));
    let mut kept = 0;
    // It answers nothing, or refuses: either is seen, and in time.
    let fault = loop {
        let once = Condition::once(kept.to_string());
        let stored = link.store(&subject, body.clone(), &once);
        match tokio::time::timeout(Duration::from_secs(30), stored).await.expect("an end") {
            Ok(_) => kept += 1,
            Err(fault) => break fault,
        }
        assert!(kept < 1000, "the disk is not small");
    };
    assert!(kept > 20, "{kept}: {fault}");
    mount(&["-o", "remount,size=256m", store.to_str().unwrap()]);
    server.restart();
    // The one that nobody knows of is sent again with the same id.
    let once = Condition::once(kept.to_string());
    link.store_surely(&subject, body, &once, Duration::from_secs(60)).await.unwrap();
    let mut come = 0;
    let begun = tokio::time::Instant::now();
    while come <= kept {
        assert!(begun.elapsed() < Duration::from_secs(60), "{come} of {}", kept + 1);
        let Ok(letters) = link.fetch_mail(Duration::from_secs(2)).await else { continue };
        while link.confirm(&letters).await.is_err() {}
        come += letters.len();
    }
    assert_eq!(come, kept + 1);
    drop(server);
    drop(disk);
}
