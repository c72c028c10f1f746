//! A host that hangs ends when it is told to.

use expect_test::expect;

use crate::cli::Desk;

/// Starts a daemon whose threads hang at `run.begins`, and makes all of them hang there.
const HANGING: &str = r#"
    echo 'hang run.begins' > fail
    ACHERON_FAILPOINT=$HOME/fail acheron mount ns --daemon > /dev/null
    pid=$(cat .local/state/acheron/acheron.pid)
    for i in 1 2 3 4; do
        (echo '{"command":"true"}' > ns/agents/charon/terminal/control/exec.json) 2> /dev/null &
    done
    runs() { readlink /proc/$pid/exe > /dev/null; }
    ended() { while runs; do sleep 0.05; done; wait; grep -c 'hung when it was told to end' .local/state/acheron/acheron.log; grep -c " $HOME/ns " /proc/mounts; }
    until [ "$(wc -l < fail.hung)" -ge 2 ]; do sleep 0.05; done 2> /dev/null
"#;

#[test]
fn a_host_whose_threads_all_hang_ends_after_a_signal() {
    Desk::new().check(
        &format!("{HANGING}\n kill -TERM $pid; ended"),
        expect![[r#"
            1
            0
            = 1
        "#]],
    );
}

#[test]
fn a_second_signal_ends_a_host_that_hangs_at_once() {
    Desk::new().check(
        &format!("{HANGING}\n kill -TERM $pid; while runs; do sleep 1.2; kill -TERM $pid 2> /dev/null; done; ended"),
        expect![[r#"
            1
            0
            = 1
        "#]],
    );
}
