//! Reads that wait: what ends them, what does not, and what they leave behind.

use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use bytes::Bytes;
use expect_test::expect;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::sync::watch;

use crate::common::{check, command, python, session, state, until};
use crate::workshop::Workshop;
use acheron::policy::PrincipalCaller;
use acheron_base::Error;
use acheron_vfs::{Answer, Caller, ChangeNotifier, Item, Node, STARTED, Stat, VersionStore};

/// A reader of `waiting.json` that is parked and asleep.
struct Reader(Child);

impl Reader {
    fn parked(shop: &Workshop, words: &[&str]) -> Reader {
        let before = shop.mount.parked();
        let mut command = Command::new(words[0]);
        // In a group of its own: a group that nobody looks after cannot be stopped.
        command.args(&words[1..]).current_dir(shop.root()).stdin(Stdio::null()).process_group(0);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        until("a reader is parked", || shop.mount.parked() > before);
        let reader = Reader(child);
        until("a reader sleeps", || reader.state() == Some('S'));
        reader
    }

    fn state(&self) -> Option<char> {
        state(self.0.id())
    }

    /// Whether its first thread keeps this signal off.
    fn blocks(&self, signal: Signal) -> bool {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.0.id())).unwrap();
        let mask = status.lines().find_map(|line| line.strip_prefix("SigBlk:")).unwrap().trim();
        u64::from_str_radix(mask, 16).unwrap() & (1 << (signal as i32 - 1)) != 0
    }

    fn send(&self, signal: Signal) {
        kill(Pid::from_raw(self.0.id() as i32), signal).unwrap();
    }

    fn said(self) -> String {
        let output = self.0.wait_with_output().unwrap();
        String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap()
    }
}

const ONE_READ: &[&str] = &["dd", "if=waiting.json", "bs=64", "count=1", "status=none"];

fn left_nothing(shop: &Workshop) {
    until("nothing is left behind", || shop.mount.parked() == 0 && shop.mount.open_handles() == 0);
}

#[test]
fn timeout_ends_a_wait() {
    let shop = Workshop::open();
    check(
        shop.root(),
        "exec 2>/dev/null; for signal in TERM INT KILL; do timeout -s $signal 1 cat waiting.json; echo $?; done",
        expect![[r#"
            124
            124
            137
        "#]],
    );
    left_nothing(&shop);
}

#[test]
fn any_signal_that_kills_ends_a_wait() {
    let shop = Workshop::open();
    for signal in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP, Signal::SIGKILL, Signal::SIGUSR1, Signal::SIGPIPE] {
        // Asleep in state S each time: before the first interrupt of the mount and after it.
        let mut reader = Reader::parked(&shop, &["cat", "waiting.json"]);
        reader.send(signal);
        let status = reader.0.wait().unwrap();
        assert_eq!(status.signal(), Some(signal as i32));
    }
    left_nothing(&shop);
}

#[test]
fn an_alarm_in_python_ends_a_wait() {
    let shop = Workshop::open();
    let said = python(
        shop.root(),
        r#"
import os, signal
class Late(Exception): pass
def late(*_): raise Late
signal.signal(signal.SIGALRM, late)
signal.setitimer(signal.ITIMER_REAL, 0.2)
try: open("waiting.json").read()
except Late: print("late")
"#,
    );
    assert_eq!(said, "late\n");
    left_nothing(&shop);
}

#[test]
fn a_signal_that_is_ignored_does_not_disturb() {
    let shop = Workshop::open();
    let reader = Reader::parked(&shop, ONE_READ);
    for signal in [Signal::SIGCHLD, Signal::SIGWINCH, Signal::SIGURG, Signal::SIGCONT] {
        reader.send(signal);
    }
    let words = [&["bash", "-c", "trap '' INT TERM; exec \"$@\"", "bash"], ONE_READ].concat();
    let deaf = Reader::parked(&shop, &words);
    deaf.send(Signal::SIGINT);
    deaf.send(Signal::SIGTERM);
    assert_eq!((shop.mount.parked(), shop.mount.request_counts()["read"]), (2, 2));
    shop.settle("done\n");
    assert_eq!((reader.said(), deaf.said()), ("done\n".to_owned(), "done\n".to_owned()));
    // One read each: neither had to begin again.
    assert_eq!(shop.mount.request_counts()["read"], 2);
    left_nothing(&shop);
}

#[test]
fn a_stopped_waiter_stops_and_goes_on() {
    let shop = Workshop::open();
    for signal in [Signal::SIGSTOP, Signal::SIGTSTP] {
        let reader = Reader::parked(&shop, ONE_READ);
        reader.send(signal);
        until("it is stopped", || reader.state() == Some('T'));
        until("it has let go", || shop.mount.parked() == 0);
        reader.send(Signal::SIGCONT);
        until("it waits again", || shop.mount.parked() == 1);
        shop.settle("done\n");
        assert_eq!(reader.said(), "done\n");
        shop.knobs.settled.send_replace(None);
    }
    left_nothing(&shop);
}

#[test]
fn one_signal_to_a_process_ends_one_of_its_waits() {
    let shop = Workshop::open();
    let script = r#"
import ctypes, os, signal, threading
libc = ctypes.CDLL(None, use_errno=True)
signal.signal(signal.SIGUSR1, lambda *_: None)
def read():
    fd = os.open("waiting.json", os.O_RDONLY)
    buf = ctypes.create_string_buffer(64)
    got = libc.pread(fd, buf, 64, ctypes.c_long(0))
    outcomes.append(buf.raw[:got] if got >= 0 else os.strerror(ctypes.get_errno()))
outcomes = []
threads = [threading.Thread(target=read) for _ in range(2)]
for t in threads: t.start()
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
for t in threads: t.join()
print(sorted(outcomes, key=str))
"#;
    let reader = Reader::parked(&shop, &["python3", "-c", script]);
    until("both threads wait", || shop.mount.parked() == 2);
    until("the first thread waits for them", || reader.blocks(Signal::SIGUSR1));
    reader.send(Signal::SIGUSR1);
    until("one wait has ended", || shop.mount.parked() == 1);
    shop.settle("done\n");
    assert_eq!(reader.said(), "['Interrupted system call', b'done\\n']\n");
    left_nothing(&shop);
}

#[test]
fn of_thirty_thousand_signals_none_is_lost_and_none_hits_the_wrong_reader() {
    let shop = Workshop::open();
    // A signal whose interrupt was lost stays pending, so its handler, which writes to the pipe, is never run. A reader
    // that was interrupted more often than it was sent a signal was hit by another's.
    let said = python(
        shop.root(),
        r#"
import ctypes, fcntl, os, random, select, signal, sys
READERS, SIGNALS = 4, 30000
libc = ctypes.CDLL(None, use_errno=True)
def reader(wake):
    os.set_blocking(wake, False)
    signal.signal(signal.SIGUSR1, lambda *_: None)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    fd = os.open("waiting.json", os.O_RDONLY)
    buf = ctypes.create_string_buffer(64)
    interrupted = strange = 0
    os.write(wake, b"r")
    while True:
        got = libc.pread(fd, buf, 64, ctypes.c_long(0))
        if got < 0 and ctypes.get_errno() == 4: interrupted += 1
        elif got < 0:
            strange += 1
            if strange > 9: return interrupted, strange # the mount is gone
        elif b"end" in buf.raw[:got]: return interrupted, strange
readers = []
for _ in range(READERS):
    (hear, wake), (result, tell) = os.pipe(), os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(hear)
        os.write(tell, repr(reader(wake)).encode())
        os._exit(0)
    os.close(wake); os.close(tell)
    readers.append([pid, hear, result, 0])
control = os.open("control/echo.json", os.O_WRONLY)
def heard(fd):
    if not select.select([fd], [], [], 60)[0]: sys.exit("a signal was lost")
    os.read(fd, 1)
for it in readers: heard(it[1])
random.seed(1)
for i in range(SIGNALS):
    it = random.choice(readers)
    move = random.random()
    if move < 0.1: os.write(control, b'{"op":"settle"}')
    if move < 0.05: os.write(control, b'{"op":"unsettle"}')
    for _ in range(random.randrange(40)): pass
    os.kill(it[0], signal.SIGUSR1)
    it[3] += 1
    if 0.05 <= move < 0.1: os.write(control, b'{"op":"unsettle"}')
    heard(it[1])
os.write(control, b'{"op":"settle","word":"end"}')
total = 0
for pid, hear, result, sent in readers:
    interrupted, strange = eval(os.read(result, 100))
    os.waitpid(pid, 0)
    total += interrupted
    if interrupted > sent or strange: print("wrong", interrupted, sent, strange)
print("interrupted often:", total > SIGNALS // 10)
"#,
    );
    assert_eq!(said, "interrupted often: True\n");
    left_nothing(&shop);
}

/// So many readers, each a thread of a process of its own: had the test its readers inside, a fault could leave it
/// unable even to die.
fn crowd(shop: &Workshop, size: usize) -> Child {
    let mut crowd = command(shop.root(), &[std::env::current_exe().unwrap().to_str().unwrap()]);
    crowd.args(["--exact", "fuse_waits::the_crowd", "--nocapture"]).env("CROWD", size.to_string());
    let crowd = crowd.stdout(Stdio::piped()).spawn().unwrap();
    until("the crowd is parked", || shop.mount.parked() == size);
    crowd
}

/// Does nothing by itself: it is what [`crowd`] runs.
#[test]
fn the_crowd() {
    let Ok(size) = std::env::var("CROWD") else { return };
    let file = std::sync::Arc::new(std::fs::File::open("waiting.json").unwrap());
    let reader = |_| {
        let file = file.clone();
        let read = move || {
            let mut bytes = [0; 64];
            let got = std::os::unix::fs::FileExt::read_at(&*file, &mut bytes, 0).unwrap();
            bytes[..got] == *b"all\n"
        };
        std::thread::Builder::new().stack_size(64 << 10).spawn(read).unwrap()
    };
    let readers: Vec<_> = (0..size.parse::<usize>().unwrap()).map(reader).collect();
    println!("{} read it all", readers.into_iter().map(|it| it.join().unwrap()).filter(|all| *all).count());
}

#[test]
fn a_thousand_killed_waiters_leave_nothing_behind() {
    let shop = Workshop::open();
    let tasks = shop.runtime.metrics().num_alive_tasks();
    let mut crowd = crowd(&shop, 1000);
    // The command is `timeout`, which passes on what it can.
    let readers = std::fs::read_to_string(format!("/proc/{0}/task/{0}/children", crowd.id())).unwrap();
    kill(Pid::from_raw(readers.trim().parse().unwrap()), Signal::SIGKILL).unwrap();
    crowd.wait().unwrap();
    left_nothing(&shop);
    until("no task is left", || shop.runtime.metrics().num_alive_tasks() <= tasks);
    assert_eq!(shop.knobs.settled.receiver_count(), 0);
}

#[test]
fn ten_thousand_wait_while_others_work_and_all_wake() {
    let shop = Workshop::open();
    let crowd = crowd(&shop, 10_000);
    check(
        shop.root(),
        "ls many | wc -l; cat text.md; echo '{\"op\":\"echo\"}' > control/echo.json && echo taken",
        expect![[r#"
            1000
            first
            taken
        "#]],
    );
    assert_eq!(shop.mount.parked(), 10_000);
    shop.settle("all\n");
    let said = String::from_utf8(crowd.wait_with_output().unwrap().stdout).unwrap();
    assert!(said.contains("10000 read it all\n"), "{said}");
    left_nothing(&shop);
}

#[test]
fn a_wait_begun_by_a_writer_ends_with_its_write() {
    let shop = Workshop::open();
    let reader = Reader::parked(&shop, ONE_READ);
    assert_eq!(session(shop.root(), r#"echo '{"op":"settle"}' > control/echo.json; echo $?"#), "0\n");
    assert_eq!(reader.said(), "{\"said\":{\"op\":\"settle\"}}\n");
}

#[test]
fn a_name_that_waits_for_a_disk_keeps_nobody_else() {
    for (word, there) in [("mkdir", true), ("rmdir", false)] {
        let shop = Workshop::open();
        if !there {
            // Before the kernel knows the directory: a notice about it would wait for whoever changes it.
            let (caller, fired) = (Caller::operator(), &shop.knobs.fired);
            let Node::Dir(dir) = shop.tree.find(&caller, "/box").unwrap().1 else { panic!("no directory") };
            let made = dir.make_dir(&caller, "later");
            fired.send_modify(|count| *count += 1);
            shop.runtime.block_on(made.wait()).unwrap();
        }
        let changes = Reader::parked(&shop, &[word, "box/later"]);
        check(
            shop.root(),
            "cat text.md slow; wc -c < live.txt; ls many | head -1; echo words > item; cat item",
            expect![[r#"
                first
                fetched
                200000
                000
                words
            "#]],
        );
        shop.knobs.fired.send_modify(|count| *count += 1);
        assert_eq!(changes.said(), "", "{word}");
        assert_eq!(shop.root().join("box/later").exists(), there, "{word}");
        left_nothing(&shop);
    }
}

/// An item whose bytes come when the test says so.
struct Slow {
    notifier: ChangeNotifier,
    there: watch::Sender<bool>,
}

impl VersionStore for Slow {
    fn stat(&self) -> Stat {
        Stat { size: 4096, modified: STARTED }
    }

    fn notifier(&self) -> Option<&ChangeNotifier> {
        Some(&self.notifier)
    }

    fn latest(&self) -> Answer<Bytes> {
        let mut there = self.there.subscribe();
        Answer::soon(async move {
            there.wait_for(|there| *there).await.map_err(|_| Error::unavailable("gone"))?;
            Ok(Bytes::from(vec![b'x'; 4096]))
        })
    }

    fn save(&self, _caller: &Caller, _bytes: Bytes) -> Answer<()> {
        Answer::ok(())
    }
}

/// The kernel is told of the change while it holds the page that is being read.
#[test]
fn a_mapped_item_that_changes_while_it_is_read_does_not_wedge_the_mount() {
    let shop = Workshop::open();
    let slow = Arc::new(Slow { notifier: ChangeNotifier::default(), there: watch::Sender::new(false) });
    shop.knobs.root.put("slow_item", Node::file(Item::new(slow.clone())));
    let script = "import mmap, os
fd = os.open('slow_item', os.O_RDONLY)
print(mmap.mmap(fd, 4096, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ)[:3])";
    let mut python = Command::new("python3");
    python.args(["-c", script]).current_dir(shop.root()).stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = python.spawn().unwrap();
    until("its page is asked for", || shop.mount.parked() == 1);
    slow.notifier.bytes();
    slow.there.send_replace(true);
    until("it was read", || child.try_wait().unwrap().is_some());
    assert_eq!(child.wait_with_output().unwrap().stdout, b"b'xxx'\n");
}
