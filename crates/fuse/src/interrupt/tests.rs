use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixDatagram;

use parking_lot::Mutex;

use super::*;

#[derive(Default)]
struct Recorder(Mutex<Vec<u64>>);

impl Interrupts for Recorder {
    fn interrupted(&self, unique: u64) {
        self.0.lock().push(unique);
    }
}

#[test]
fn the_earliest_time_is_made_later_and_nothing_else_is_touched() {
    let set = |opcode: u32, time: i64| {
        let mut bytes = message(opcode, 0);
        bytes.resize(128, 0);
        bytes[80..88].copy_from_slice(&time.to_ne_bytes());
        fix_earliest_time(&mut bytes);
        i64::from_ne_bytes(bytes[80..88].try_into().unwrap())
    };
    assert_eq!(set(SETATTR, i64::MIN), i64::MIN + 1);
    assert_eq!(set(SETATTR, -5), -5);
    assert_eq!(set(3, i64::MIN), i64::MIN);
    fix_earliest_time(&mut message(SETATTR, 0));
}

fn message(opcode: u32, tail: u64) -> Vec<u8> {
    let mut bytes = vec![0; HEADER];
    bytes[4..8].copy_from_slice(&opcode.to_ne_bytes());
    bytes.extend(tail.to_ne_bytes());
    bytes
}

#[test]
fn messages_are_told_apart() {
    assert_eq!(classify(&message(INIT, 0)), Message::Init);
    assert_eq!(classify(&message(INTERRUPT, 7)), Message::Interrupt(7));
    assert_eq!(classify(&message(15, 7)), Message::Other);
    assert_eq!(classify(&message(INTERRUPT, 7)[..44]), Message::Other);
    assert_eq!(classify(&[]), Message::Other);
}

/// Reads one datagram through the standard library, as any code of the program would.
fn received(socket: &UnixDatagram) -> Vec<u8> {
    let mut buffer = vec![0; SESSION_BUFFER + 4096];
    let mut file = std::fs::File::from(std::os::fd::OwnedFd::from(socket.try_clone().unwrap()));
    let descriptor = file.as_raw_fd();
    assert_ne!(descriptor, socket.as_raw_fd());
    let got = file.read(&mut buffer).unwrap();
    buffer.truncate(got);
    buffer
}

#[test]
fn without_registration_everything_is_handed_on() {
    let (ours, theirs) = UnixDatagram::pair().unwrap();
    theirs.send(&message(INTERRUPT, 7)).unwrap();
    assert_eq!(received(&ours), message(INTERRUPT, 7));
}

#[test]
fn an_interrupt_is_heard_and_taken_out_and_only_on_its_own_descriptor() {
    let (ours, theirs) = UnixDatagram::pair().unwrap();
    let recorded = Arc::new(Recorder::default());
    let mut file = std::fs::File::from(std::os::fd::OwnedFd::from(ours));
    let registered = register(file.as_raw_fd(), recorded.clone());
    assert!(!registered.in_force());
    for (opcode, unique) in [(INIT, 0), (INTERRUPT, 8), (INTERRUPT, 10), (15, 3)] {
        theirs.send(&message(opcode, unique)).unwrap();
    }
    let mut buffer = vec![0; SESSION_BUFFER + 4096];
    let got = file.read(&mut buffer).unwrap();
    assert_eq!(buffer[..got], message(INIT, 0));
    assert!(registered.in_force());
    let got = file.read(&mut buffer).unwrap();
    assert_eq!(buffer[..got], message(15, 3));
    assert_eq!(*recorded.0.lock(), [8, 10]);

    drop(registered);
    theirs.send(&message(INTERRUPT, 12)).unwrap();
    let got = file.read(&mut buffer).unwrap();
    assert_eq!(buffer[..got], message(INTERRUPT, 12));
    assert_eq!(*recorded.0.lock(), [8, 10]);
}

#[test]
fn small_reads_are_ordinary_reads() {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(&message(INTERRUPT, 1)).unwrap();
    let mut bytes = Vec::new();
    std::io::Seek::rewind(&mut file).unwrap();
    file.read_to_end(&mut bytes).unwrap();
    assert_eq!(bytes, message(INTERRUPT, 1));
}

/// Knows the threads below 100 as one principal, and those above as another.
struct TwoCallers;

impl Identify for TwoCallers {
    fn caller(&self, uid: u32, gid: u32, tid: u32) -> acheron_vfs::Caller {
        acheron_vfs::Caller { uid, gid, pid: tid, identity: acheron_vfs::Identity::named("anyone") }
    }

    fn known(&self, tid: u32) -> Option<acheron_vfs::Identity> {
        Some(acheron_vfs::Identity::named(if tid < 100 { "many" } else { "one" }))
    }
}

#[test]
fn requests_that_wait_together_are_handed_on_in_turns_and_later_ones_as_they_come() {
    let (ours, theirs) = UnixDatagram::pair().unwrap();
    let mut file = std::fs::File::from(std::os::fd::OwnedFd::from(ours));
    let recorded = Arc::new(Recorder::default());
    let registered = register(file.as_raw_fd(), recorded.clone());
    registered.take_turns(Arc::new(TwoCallers));
    let from = |tid: u32, number: u64| {
        let mut bytes = message(15, number);
        bytes[32..36].copy_from_slice(&tid.to_ne_bytes());
        bytes
    };
    let mut buffer = vec![0; SESSION_BUFFER + 4096];
    let mut next = || {
        let got = file.read(&mut buffer).unwrap();
        u64::from_ne_bytes(buffer[HEADER..got].try_into().unwrap())
    };
    for _ in 0..2 * IDLE {
        // One at a time, with pauses: the descriptor waits again.
        theirs.send(&from(1, 7)).unwrap();
        assert_eq!(next(), 7);
    }
    (0..4).for_each(|number| drop(theirs.send(&from(number + 1, number.into()))));
    theirs.send(&message(INTERRUPT, 9)).unwrap();
    theirs.send(&from(100, 100)).unwrap();
    theirs.send(&from(101, 101)).unwrap();
    assert_eq!([(); 6].map(|()| next()), [0, 100, 1, 101, 2, 3]);
    assert_eq!(*recorded.0.lock(), [9]);
    // Nothing is left, and the next one is waited for.
    let later = std::thread::spawn(move || theirs.send(&from(1, 8)).map(|_| theirs));
    assert_eq!(next(), 8);
    later.join().unwrap().unwrap();
}
