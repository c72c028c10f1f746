//! Queues that all agents share: leases, retries, dead letters, and workers that go.

use expect_test::expect;
use serde_json::json;

use crate::common::{session, until};
use crate::test_host::TestHost;

const SPEC: &str = r#"{"layout": "acheron-1", "agents": {"charon": {},
    "styx": {"permissions": [{"deny": ["invoke", "read"], "path": "/agents/self/queues/names/payroll/**"}]}}}"#;

fn house() -> TestHost {
    TestHost::of(SPEC)
}

#[test]
fn an_item_is_put_taken_and_done_by_other_agents() {
    let mut house = house();
    house.check(
        r#"cd agents/charon/queues
        echo '{"queue":"souls","body":{"name":"Orpheus"},"id":"o"}' > control/put.json
        echo '{"queue":"souls","body":"Eurydice","priority":5}' > control/put.json
        echo '{"queue":"souls","body":{"name":"Orpheus"},"id":"o"}' > control/put.json; jq -c .result result.json
        ls names; jq -c '[.ready,.delayed,.leased,.dead]' names/souls/status.json
        cd ../../styx/queues; ls names
        echo '{"queue":"souls"}' > control/take.json; jq -c '.result | [.body,.attempt]' result.json"#,
        expect![[r#"
            {"queue":"souls","id":"o"}
            souls
            [2,0,0,0]
            souls
            ["Eurydice",1]
        "#]],
    );
    house.restart();
    house.check(
        r#"cd agents/styx/queues
        job=$(ls -d ../jobs/job-* | tail -1); jq -c '{lease: .result.lease}' $job/result.json > control/done.json; jq -r .result.state result.json
        jq -c '{lease: .result.lease}' $job/result.json > control/done.json; jq -r .result.state result.json
        echo '{"queue":"souls","wait_ms":0}' > control/take.json; jq -c '.result | [.id,.attempt]' result.json
        echo '{"queue":"souls","wait_ms":10}' > control/take.json; jq -c '.result.empty' result.json
        jq -c '[.ready,.delayed,.leased,.dead]' names/souls/status.json
        echo '{"lease":"souls.wrong"}' > control/done.json; jq -c .error result.json"#,
        expect![[r#"
            done
            done
            ["o",1]
            true
            [0,0,1,0]
            {"code":"fenced","message":"this lease is not in force any more: its time was up, or it has ended; take an item again"}
        "#]],
    );
}

#[test]
fn what_fails_comes_again_and_is_dead_in_the_end() {
    let house = house();
    house.check(
        r#"cd agents/charon/queues
        take() { echo '{"queue":"q","lease_ms":20}' > control/take.json; jq -c '.result | [.id,.attempt]' result.json; }
        lease() { jq -r .result.lease $(ls -d ../jobs/job-* | tail -1)/result.json; }
        echo '{"queue":"q","body":1,"id":"x","max_attempts":3}' > control/put.json
        take; lease=$(lease)
        take
        echo "{\"lease\":\"$lease\"}" > control/done.json; jq -r .error.code result.json
        take; echo "{\"lease\":\"$(lease)\",\"error\":\"full\"}" > control/fail.json; jq -c '.result | [.state,.due_ms]' result.json
        ls names/q/dead; jq -c '[.id,.attempts,.error]' names/q/dead/x.json
        echo '{"queue":"q","id":"x"}' > control/retry.json; take
        echo "{\"lease\":\"$(lease)\",\"retry_in_ms\":30}" > control/fail.json; take
        echo "{\"lease\":\"$(lease)\",\"lease_ms\":60000}" > control/extend.json; jq -r .result.state result.json"#,
        expect![[r#"
            ["x",1]
            ["x",2]
            fenced
            ["x",3]
            ["failed",null]
            x.json
            ["x",3,"full"]
            ["x",1]
            ["x",2]
            extended
        "#]],
    );
}

#[test]
fn who_waits_is_woken_and_who_goes_takes_nothing() {
    let house = house();
    house.check(
        r#"cd agents/charon/queues
        (sleep 0.3; echo '{"queue":"q","body":"first"}' > control/put.json) &
        exec 3<>control/take.json; echo '{"queue":"q"}' >&3; jq -r .result.body <&3; exec 3>&-; wait
        # A program that is killed while it waits takes nothing.
        cat > /tmp/worker.$$ <<'W'
exec 3<>control/take.json; echo '{"queue":"w","wait_ms":60000}' >&3; cat <&3
W
        set -m; bash /tmp/worker.$$ & worker=$!; set +m
        until grep -q running ../jobs/last/progress.json; do sleep 0.05; done
        kill -9 -- -$worker; wait $worker 2> /dev/null; rm /tmp/worker.$$
        timeout 60 jq -r .state ../jobs/last/status.json
        # One that is cancelled neither.
        echo '{"queue":"w"}' > control/take.json; echo 1 > ../jobs/last/control/cancel; jq -r .state ../jobs/last/status.json
        echo '{"queue":"w","body":7}' > control/put.json; jq -c '[.ready,.leased]' names/w/status.json"#,
        expect![[r#"
            first
            cancelled
            cancelled
            [1,0]
        "#]],
    );
}

#[test]
fn a_delayed_item_wakes_who_waits_for_it() {
    let house = house();
    house.check(
        r#"cd agents/charon/queues
        echo '{"queue":"q"}' > control/take.json
        echo "{\"queue\":\"q\",\"body\":\"late\",\"not_before_ms\":$(( $(date +%s%3N) + 300 ))}" > control/put.json
        jq -r .result.body ../jobs/$(ls ../jobs | grep job- | tail -2 | head -1)/result.json
        for i in 1 2 3 4; do echo '{"queue":"many"}' > control/take.json; done
        for i in 1 2 3 4; do echo "{\"queue\":\"many\",\"body\":$i}" > control/put.json; done
        for job in $(ls -d ../jobs/job-* | tail -8 | head -4); do jq -r .result.body $job/result.json; done | sort"#,
        expect![[r#"
            late
            1
            2
            3
            4
        "#]],
    );
}

#[test]
fn a_queue_that_a_rule_denies_can_be_neither_used_nor_seen() {
    let house = house();
    house.check(
        r#"cd agents/styx/queues; echo '{"queue":"payroll","body":1}' > ../../charon/queues/control/put.json
        run() { jq -cn --arg c "cd /agents/self/queues; $1" '{command: $c}' > ../terminal/control/exec.json; jq -r '.result.stdout + .result.stderr' ../terminal/result.json; }
        run "echo '{\"queue\":\"payroll\",\"body\":2}' > control/put.json 2> /dev/null; jq -r .error.code,.error.message status.json"
        run "echo '{\"lease\":\"payroll.x\"}' > control/done.json 2> /dev/null; jq -r .error.code status.json"
        run "echo '{\"queue\":\"souls\",\"body\":2}' > control/put.json; ls names; cat names/payroll/status.json"
        echo '{"queue":"../x","body":2}' > control/put.json; jq -r .error.message status.json"#,
        expect![[r#"
            forbidden
            a rule denies invoke on /agents/self/queues/names/payroll/**

            forbidden

            souls
            cat: names/payroll/status.json: Permission denied

            `../x` is not the name of a queue: it has up to 64 of a-z, 0-9, _ and -, and begins with a letter or a digit
            ! bash: line 6: echo: write error: Invalid argument
        "#]],
    );
}

/// Two workers take from one queue, and are interrupted and killed again and again: every item is done, and none twice.
#[test]
fn items_survive_workers_that_are_interrupted_and_killed() {
    let house = house();
    let (items, out) = (30, house.here().join("done.txt"));
    let put: String =
        (0..items).map(|n| json!({"queue": "work", "body": n, "max_attempts": 1000}).to_string()).collect();
    std::fs::write(house.root().join("agents/charon/queues/control/put.json"), put).unwrap();
    let worker = format!(
        r#"cd agents/charon/queues; while :; do
            exec 3<>control/take.json; echo '{{"queue":"work","wait_ms":60000,"lease_ms":1500}}' >&3; item=$(cat <&3); exec 3>&-
            exec 4<>control/done.json; echo "$item" | jq -c '{{lease: .result.lease}}' >&4
            [ "$(jq .ok <&4)" = true ] && echo "$item" | jq .result.body >> {}; exec 4>&-
        done"#,
        out.display()
    );
    let start = || crate::common::command(&house.root(), &["bash", "-c", &worker]).spawn().unwrap();
    // `timeout` has made a group of them, as a terminal does.
    let end = |mut worker: std::process::Child, signal: nix::sys::signal::Signal| {
        let pid = nix::unistd::Pid::from_raw(worker.id().cast_signed());
        _ = nix::sys::signal::killpg(pid, signal);
        std::thread::sleep(std::time::Duration::from_millis(20));
        _ = nix::sys::signal::killpg(pid, nix::sys::signal::SIGKILL);
        _ = worker.wait();
    };
    for round in 0..6 {
        let workers = [start(), start()];
        std::thread::sleep(std::time::Duration::from_millis(300 + 100 * round));
        for (worker, signal) in workers.into_iter().zip([nix::sys::signal::SIGINT, nix::sys::signal::SIGKILL]) {
            end(worker, signal);
        }
    }
    let last = [start(), start()];
    let left = "jq '.ready + .delayed + .leased + .dead' agents/charon/queues/names/work/status.json";
    until("all items are done", || session(&house.root(), left) == "0\n");
    last.into_iter().for_each(|worker| end(worker, nix::sys::signal::SIGKILL));
    // A worker may die between its `done` and its note, but none notes an item twice.
    let noted: Vec<u64> = std::fs::read_to_string(&out).unwrap().lines().map(|line| line.parse().unwrap()).collect();
    let distinct: std::collections::BTreeSet<u64> = noted.iter().copied().collect();
    assert_eq!(noted.len(), distinct.len(), "{noted:?}");
    assert!(!noted.is_empty());
}
