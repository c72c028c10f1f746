//! Shells that stay.

use std::sync::Arc;
use std::time::Duration;

use crate::{block, program};
use acheron::services::terminal::{RunningPrograms, Session, Surroundings};
use acheron_base::{Clock, Code};
use acheron_sandbox::{Plan, TerminalSize, signal_named};

const LONG: Duration = Duration::from_secs(20);

async fn session(shell: &str) -> Arc<Session> {
    started(Plan::new("charon", [shell, "-i"])).await
}

async fn started(mut plan: Plan) -> Arc<Session> {
    plan.env.insert("PS1".into(), "$ ".into());
    let programs = Arc::new(RunningPrograms::default());
    let (_, entry) = programs.begin("charon", || Ok(Surroundings::default())).await.unwrap();
    let (size, clock) = (TerminalSize { cols: 80, rows: 24 }, Clock::at(5));
    Session::start(program(), (plan, entry), "term-1".into(), size, clock).await.unwrap()
}

/// Reads until the output contains `word`.
async fn until(session: &Session, word: &str) -> String {
    let (mut text, mut at) = (String::new(), 0);
    while !text.contains(word) {
        let piece = session.read(at, 4096, LONG).await;
        assert!(piece.next > at, "no {word:?} in {text:?}");
        text += &String::from_utf8(piece.bytes).unwrap();
        at = piece.next;
    }
    text
}

/// Runs a command: what it printed, and its exit code.
async fn exec(session: &Session, token: &str, command: &str) -> (String, i32) {
    let answered = session.exec(command, token, LONG, 1 << 20, &|_| (), std::future::pending()).await.unwrap();
    (String::from_utf8_lossy(&answered.output.kept).into_owned(), answered.exit_code)
}

#[test]
fn the_state_of_the_shell_persists_between_commands() {
    block(async {
        for shell in ["bash", "sh"] {
            let session = session(shell).await;
            assert_eq!(exec(&session, "t1", "cd /tmp && X='a b'; pwd").await, ("/tmp\n".into(), 0), "{shell}");
            assert_eq!(exec(&session, "t2", "echo \"$X\"; pwd\n(exit 3)").await, ("a b\n/tmp\n".into(), 3), "{shell}");
            assert_eq!(exec(&session, "t3", "cat; no-such-program 2>/dev/null").await, (String::new(), 127), "{shell}");
            assert_eq!(exec(&session, "t4", "if then").await.1, 2, "{shell}");
            assert_eq!(exec(&session, "t5", "stty size </dev/tty").await, ("24 80\n".into(), 0), "{shell}");
            assert_eq!(exec(&session, "t6", "exit 9").await.1, 9, "{shell}");
            assert_eq!((session.facts().state.as_str(), session.facts().exit_code), ("closed", Some(9)));
        }
    });
}

#[test]
fn commands_in_quick_succession_print_what_they_print_and_nothing_of_ours() {
    block(async {
        for shell in ["bash", "sh"] {
            let session = session(shell).await;
            let mut shown = String::new();
            for n in 0..100 {
                let command = format!("printf 'line %d\\n' {n}");
                assert_eq!(exec(&session, &format!("t{n}"), &command).await, (format!("line {n}\n"), 0), "{shell}");
                shown += &format!("{command}\r\nline {n}\r\n");
            }
            // A prompt that comes after the next command was typed is not shown.
            assert_eq!(until(&session, "\nline 99\r\n").await.replace("$ ", ""), shown, "{shell}");
            session.close().await;
        }
    });
}

#[test]
fn a_command_that_the_shell_gives_up_ends_and_the_shell_goes_on() {
    block(async {
        for shell in ["bash", "sh"] {
            let session = session(shell).await;
            until(&session, "$ ").await;
            assert_eq!(exec(&session, "t1", "X=kept; kill -INT $$; echo never").await, ("\n".into(), 130), "{shell}");
            until(&session, "never\r\n\r\n$ ").await;
            assert_eq!(exec(&session, "t2", "echo $X").await, ("kept\n".into(), 0), "{shell}");
            let shown = "$ X=kept; kill -INT $$; echo never\r\n\r\n$ echo $X\r\nkept\r\n$ ";
            assert_eq!(until(&session, "kept\r\n$ ").await, shown, "{shell}");
            // A job that keeps printing is no reason to wait for ever.
            let command = "(while :; do echo; sleep 0.1; done) & kill -INT $$";
            assert_eq!(exec(&session, "t3", command).await.1, 130, "{shell}");
            session.close().await;
        }
    });
}

#[test]
fn a_command_that_ends_its_shell_is_heard_to_the_end() {
    block(async {
        let said = |shell, command| async move {
            let session = session(shell).await;
            let (said, code) = exec(&session, "t1", command).await;
            let open = session.is_open();
            session.close().await;
            (said, code, open)
        };
        let printed = |text: &str, code, open| (text.to_owned(), code, open);
        assert_eq!(said("sh", "echo a; return 5").await, printed("a\n", 5, false));
        assert_eq!(said("sh", "exec /nonexistent 2>/dev/null").await, printed("", 127, false));
        assert_eq!(said("bash", "echo a; return 5 2>/dev/null").await, printed("a\n", 2, true));
        assert_eq!(said("bash", "exec /nonexistent 2>/dev/null").await, printed("", 127, true));
        for shell in ["bash", "sh"] {
            assert_eq!(said(shell, "printf 'a '; set -e; false; echo b").await, printed("a ", 1, false), "{shell}");
        }
    });
}

#[test]
fn a_shell_that_is_busy_itself_is_not_disturbed() {
    block(async {
        for shell in ["bash", "sh"] {
            let session = session(shell).await;
            until(&session, "$ ").await;
            let command = "(exec sleep 1 & wait); printf 'one '; { sleep 1 & } 2>/dev/null; wait; echo done";
            let quiet = format!("set +m; {command}");
            assert_eq!(exec(&session, "t1", &quiet).await, ("one done\n".into(), 0), "{shell}");
            until(&session, "\none done\r\n$ ").await;
            assert_eq!(exec(&session, "t2", "echo next").await, ("next\n".into(), 0), "{shell}");
            let shown = format!("$ {quiet}\r\none done\r\n$ echo next\r\nnext\r\n$ ");
            assert_eq!(until(&session, "\nnext\r\n$ ").await, shown, "{shell}");
            session.close().await;
        }
    });
}

#[test]
fn long_and_odd_commands_arrive_as_they_are() {
    block(async {
        let session = session("sh").await;
        let text = "x\ty '\"$!\\`é\n".repeat(800);
        let command = format!("cat <<'END'\n{text}END\n");
        assert!(exec(&session, "t1", &command).await == (text, 0));
        session.close().await;
    });
}

#[test]
fn a_reader_that_comes_back_goes_on_where_it_stopped() {
    block(async {
        let session = session("sh").await;
        session.write(b"stty -echo; echo one''-; echo t''wo\n").await.unwrap();
        let seen = until(&session, "two").await;
        let offset = seen.find("one-").unwrap() as u64;
        let piece = session.read(offset, 4, LONG).await;
        assert_eq!((piece.bytes.as_slice(), piece.offset, piece.next), (&b"one-"[..], offset, offset + 4));
        assert!(!piece.eof);
        session.close().await;
        let rest = session.read(piece.next, 1000, LONG).await;
        assert!(rest.eof && rest.bytes.starts_with(b"\r\ntwo"), "{rest:?}");
        assert_eq!(session.write(b"x").await.unwrap_err().message, "the session `term-1` is closed");
    });
}

#[test]
fn a_wait_for_output_that_does_not_come_ends() {
    block(async {
        let session = session("sh").await;
        until(&session, "$ ").await;
        let nothing = session.read(1 << 40, 10, Duration::ZERO).await;
        assert_eq!((nothing.bytes.len(), nothing.eof), (0, false));
        session.close().await;
    });
}

#[test]
fn a_signal_reaches_what_runs_in_the_foreground() {
    block(async {
        let session = session("bash").await;
        // A shell that is still starting would die of the signal itself.
        until(&session, "$ ").await;
        session.write(b"sleep 600 || echo inter''rupted; read x\n").await.unwrap();
        // The echo of the line says that it was typed, not that it runs: signal until it is heard.
        let mut at = 0;
        let mut text = String::new();
        while !text.contains("\ninterrupted") {
            _ = session.signal(signal_named("TERM").unwrap());
            let piece = session.read(at, 4096, Duration::from_millis(20)).await;
            assert!(!piece.eof, "closed after {text:?}");
            text += &String::from_utf8_lossy(&piece.bytes);
            at = piece.next;
        }
        session.close().await;
    });
}

#[test]
fn a_deadline_ends_the_command_and_keeps_the_shell() {
    block(async {
        let session = session("bash").await;
        assert_eq!(exec(&session, "t1", "X=kept").await, (String::new(), 0));
        for (token, command) in [("t2", "sleep 600"), ("t3", "while :; do :; done"), ("t4", "trap '' INT; sleep 600")] {
            let late =
                session.exec(command, token, Duration::from_millis(100), 10, &|_| (), std::future::pending()).await;
            assert_eq!(late.unwrap_err().code, Code::Timeout, "{command}");
            assert_eq!(exec(&session, &format!("{token}x"), "echo $X").await, ("kept\n".into(), 0), "{command}");
        }
        assert_eq!(exec(&session, "t4y", "trap - INT").await, (String::new(), 0));
        // Long enough for the fallback line to be typed while the shell is busy.
        let busy = "while :; do :; done";
        let late = session.exec(busy, "t5", Duration::from_secs(1), 10, &|_| (), std::future::pending()).await;
        assert_eq!(late.unwrap_err().code, Code::Timeout);
        assert_eq!(exec(&session, "t6", "echo $X again").await, ("kept again\n".into(), 0));
        let shown = until(&session, "\nkept again").await;
        assert!(!shown.contains("printf"), "{shown}");
        session.close().await;
    });
}

#[test]
fn a_command_that_is_stopped_ends_with_all_that_it_started_and_with_nothing_older() {
    let shared = tempfile::tempdir().unwrap();
    let lock = |name: &str| std::fs::File::options().append(true).create(true).open(shared.path().join(name)).unwrap();
    let (old, new) = (lock("old"), lock("new"));
    // Leaves its family, its group and its session, and holds a lock for as long as it lives.
    let leave = |name: &str| {
        format!("(trap '' HUP INT; setsid flock /shared/{name} sh -c 'echo up > /shared/{name}.up; sleep 600' &)")
    };
    block(async {
        let plan = Plan::new("charon", ["bash", "-i"]).bind(shared.path(), "/shared", false);
        let session = started(plan).await;
        let command = format!("X=kept; {}; until [ -e /shared/old.up ]; do sleep 0.01; done", leave("old"));
        assert_eq!(exec(&session, "t1", &command).await, (String::new(), 0));
        let up = async {
            while !shared.path().join("new.up").exists() {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        let command = format!("{}; sleep 600; sleep 601; sleep 602", leave("new"));
        let stopped = session.exec(&command, "t2", LONG, 10, &|_| (), up).await;
        assert_eq!(stopped.unwrap_err().code, Code::Cancelled);
        new.lock().unwrap(); // a survivor would hold it for ten minutes
        assert!(old.try_lock().is_err(), "what an earlier command left running is not this one's");
        assert_eq!(exec(&session, "t3", "echo $X").await, ("kept\n".into(), 0));
        session.close().await;
    });
}

#[test]
fn the_window_has_the_size_it_was_given() {
    block(async {
        let session = session("bash").await;
        session.write(b"tty\n").await.unwrap();
        until(&session, "\n/dev/console").await;
        session.resize(TerminalSize { cols: 100, rows: 30 }).unwrap();
        assert_eq!(exec(&session, "t1", "stty size </dev/tty").await, ("30 100\n".into(), 0));
        assert_eq!((session.facts().cols, session.facts().exec_count), (100, 1));
        session.close().await;
    });
}
