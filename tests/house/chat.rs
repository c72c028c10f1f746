//! Conversations on a real mount: what a person types and sees.

use expect_test::expect;
use serde_json::{Value, json};

use crate::test_host::TestHost;

/// A mountspec whose one agent answers from `script.ndjson`, beside the files of the project.
fn scripted(lines: &[Value]) -> TestHost {
    let spec = json!({"layout": "acheron-1", "model": {"kind": "script", "name": "script.ndjson"},
        "agents": {"charon": {"projects": ["here"]}}, "projects": {"here": {"binds": {"/": {"path": "."}}}}});
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    TestHost::prepared(&spec.to_string(), |here| std::fs::write(here.join("script.ndjson"), text).unwrap())
}

fn call(name: &str, arguments: Value) -> Value {
    json!({"answer": {"tool_calls": [{"name": name, "arguments": arguments}]}})
}

fn reply(text: &str) -> Value {
    call("file_write", json!({"path": "agents/self/chat/control/reply", "content": text}))
}

#[test]
fn the_guide_answers_without_a_key() {
    TestHost::new().check(
        r#"
        cd agents/self/chat
        echo hi > control/input; head -1 latest.txt
        exec 3<>control/input; echo 'how do I connect a model?' >&3; head -1 <&3; exec 3>&-
        echo 'remember that the ferry leaves at "nine"' > control/input; cat latest.txt | cut -c1-62
        turn=$(jq -r .job_id status.json)
        jq -r .tags[0] ../memory/items/*/meta.json | grep -qx "$turn" && cat ../memory/items/*/content; echo
        echo 'what do you know about the ferry?' > control/input; head -1 latest.txt
        echo 'remember that my boat is blue' > control/input; cat latest.txt > /dev/null
        echo 'what colour is my boat?' > control/input; head -1 latest.txt
        echo 'where is my hat?' > control/input; head -1 latest.txt
        echo 'what services are there?' > control/input; grep -c '^- `' latest.txt > /dev/null && echo listed
        jq -r '[.seq, .input, (.error == null)] | @csv' history.ndjson
        "#,
        expect![[r#"
            Hello! I am the guide of this tree: a script, not a language model, so that everything works before you have a key. Try
            I am a script, not a language model: I match patterns and know a handful of answers.
            I shall remember that. It is now a file, agents/self/memory/it
            the ferry leaves at "nine"
            From memory: the ferry leaves at "nine"
            From memory: my boat is blue
            I find nothing about that in my memory. Tell me: remember that …
            listed
            1,"hi",true
            2,"how do I connect a model?",true
            3,"remember that the ferry leaves at ""nine""",true
            4,"what do you know about the ferry?",true
            5,"remember that my boat is blue",true
            6,"what colour is my boat?",true
            7,"where is my hat?",true
            8,"what services are there?",true
        "#]],
    );
}

#[test]
fn messages_queue_and_a_refusal_has_its_sentence() {
    let wait = call("file_read", json!({"path": "agents/self/events/sources/user/go.json"}));
    scripted(&[wait, reply("one"), reply("two")]).check(
        r#"
        cd agents/self/chat
        echo first > control/input
        echo second > control/input
        jq -c '[.state, .queued]' status.json | grep -c queued\\\|running
        echo no > control/reply || jq -r .error.message status.json
        echo '{"event_type":"user","parameter":"go"}' > ../events/control/signal.json
        cat latest.txt
        jq -r .reply history.ndjson
        cat ../jobs/last/result.txt
        printf ' \n' > control/input
        echo x > ../jobs/last/control/cancel
        "#,
        expect![[r#"
            1
            only charon itself may write its reply; write to control/input instead
            two
            one
            two
            two
            ! bash: line 6: control/reply: Permission denied
        "#]],
    );
}

#[test]
fn an_outside_program_serves_the_turns_of_an_external_agent() {
    let spec = json!({"layout": "acheron-1", "model": {"kind": "external"}, "agents": {"charon": {}}});
    TestHost::of(&spec.to_string()).check(
        r#"
        cd agents/self
        exec 3<>events/control/wait.json
        echo '{"paths":["/agents/self/chat/control/input"],"timeout_ms":60000}' >&3
        echo 'two and two?' > chat/control/input
        head -1 <&3 | jq -r .chat.input
        until [ "$(jq -r .state chat/status.json)" = running ]; do :; done
        cat chat/control/input
        echo four > chat/control/reply
        cat chat/latest.txt
        "#,
        expect![[r#"
            two and two?
            two and two?
            four
        "#]],
    );
}

/// The loop of the page about external models.
fn serving() -> &'static str {
    let page = include_str!("../../global-library/topics/external-models.md");
    page.split("```bash\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap()
}

#[test]
fn two_programs_at_once_answer_every_turn_with_its_own_answer() {
    let spec = json!({"layout": "acheron-1", "model": {"kind": "external"}, "agents": {"charon": {}}});
    let said = TestHost::of(&spec.to_string()).says(&format!(
        r#"
        answer() {{ sed 's/^/heard /'; }}
        serve() {{ {} }}
        serve 2> /dev/null & one=$!; serve 2> /dev/null & two=$!
        cd agents/self/chat; out=$(mktemp -d)
        for n in $(seq 1 20); do
          (exec 3<>control/input; echo "question $n" >&3; cat <&3 > $out/$n) & asked="$asked $!"
        done
        wait $asked
        for n in $(seq 1 20); do [ "$(cat $out/$n)" = "heard question $n" ] || echo "$n got $(cat $out/$n)"; done
        kill $one $two; rm -r $out
        jq -c '[.queued, .input]' status.json
        ls
        "#,
        serving()
    ));
    assert_eq!(said, "[0,null]\nREADME.md\ncontrol\nhistory.ndjson\nhistory.ndjson.1\nlatest.txt\nstatus.json\n");
}

#[test]
fn a_pending_turn_is_shown_until_it_is_answered_once() {
    let spec = json!({"layout": "acheron-1", "model": {"kind": "external"}, "agents": {"charon": {}}});
    TestHost::of(&spec.to_string()).check(
        r#"
        cd agents/self/chat
        echo one > control/input; echo two > control/input; echo three > control/input
        for n in 1 2; do jq -r .input pending.json; done
        first=$(jq -r .turn pending.json)
        reply() { jq -nc --arg turn $1 --arg reply "$2" '{turn: $turn, reply: $reply}' > control/reply.json || jq -r .error.message status.json; }
        reply $first 'to one'
        jq -r .input pending.json
        reply $first again 2> /dev/null > /dev/null; jq -r .error.code status.json
        echo 'to two' > control/reply
        jq -c '[.input, .source]' pending.json
        reply $(jq -r .turn pending.json) 'to three'
        cat latest.txt
        jq -r .reply history.ndjson
        reply job-1 x 2> /dev/null
        echo '{"turn": 1}' > control/reply.json 2> /dev/null || jq -r .error.code status.json
        "#,
        expect![[r#"
            one
            one
            two
            conflict
            ["three","chat"]
            to three
            to one
            to two

            to three
            charon has no turn `job-1`
            invalid_payload
        "#]],
    );
}

#[test]
fn who_has_a_model_has_nothing_pending() {
    TestHost::new().check(
        "cat agents/self/chat/pending.json; ls agents/self/chat/pending.json",
        expect![[r#"
            agents/self/chat/pending.json
            ! cat: agents/self/chat/pending.json: No such device or address
        "#]],
    );
}

#[test]
fn a_program_that_polls_reads_the_reply_to_its_message() {
    let spec = json!({"layout": "acheron-1", "model": {"kind": "external"}, "agents": {"charon": {}}});
    let house = TestHost::of(&spec.to_string());
    let said = crate::common::python(
        &house.root(),
        r#"
import json, os, select
os.chdir("agents/self/chat")
fd = os.open("control/input", os.O_RDWR | os.O_NONBLOCK)
for text in (b"one", b"two"):
    os.write(fd, text[:1]); os.write(fd, text[1:] + b"\n")
    out = select.poll(); out.register(fd, select.POLLOUT); print(len(out.poll(0)))
    p = select.poll(); p.register(fd, select.POLLIN)
    print(p.poll(0))
    try: print(os.read(fd, 80))
    except BlockingIOError: print("not yet")
    print(p.poll(0))
    while json.load(open("status.json"))["input"] != text.decode(): pass
    with open("control/reply", "w") as reply: reply.write("heard " + text.decode())
    print(len(p.poll(60000)), os.read(fd, 80), os.read(fd, 80))
"#,
    );
    expect![[r#"
        1
        []
        not yet
        []
        1 b'heard one\n' b''
        1
        []
        not yet
        []
        1 b'heard two\n' b''
    "#]]
    .assert_eq(&said);
}

#[test]
fn a_message_that_is_refused_at_its_close_is_the_error_of_the_status() {
    let spec = json!({"layout": "acheron-1", "model": {"kind": "external"}, "agents": {"charon": {}}});
    TestHost::of(&spec.to_string()).check(
        r#"
        cd agents/self/chat
        printf ' \n' > control/input
        jq -c '[.state, .error.code, .error.message]' status.json
        head -c 2M /dev/zero | tr '\0' x | dd bs=1M of=control/input status=none iflag=fullblock
        jq -c '[.state, .error.code, .error.message]' status.json
        echo hi > control/input
        jq -c '.error' status.json
        "#,
        expect![[r#"
            ["refused","invalid_payload","the message is empty"]
            ["refused","too_large","a message has at most 1048576 bytes"]
            null
            ! dd: error writing 'control/input': File too large
            ! dd: closing output file 'control/input': File too large
        "#]],
    );
}

#[test]
fn the_status_is_about_one_turn() {
    let spec = json!({"layout": "acheron-1", "model": {"kind": "external"}, "agents": {"charon": {}}});
    TestHost::of(&spec.to_string()).check(
        r#"
        cd agents/self/chat
        running() { until [ "$(jq -r .input status.json)" = $1 ]; do :; done; }
        echo one > control/input; running one
        echo > ../jobs/last/control/cancel; cat latest.txt
        jq -c '[.state, .error.code]' status.json
        before=$(jq .updated_at_ms status.json)
        echo two > control/input; running two
        jq -c --argjson before $before '[.state, .error, .updated_at_ms >= $before]' status.json
        [ "$(jq .updated_at_ms status.json)" = "$(jq .updated_at_ms ../jobs/last/progress.json)" ] && echo its own time
        "#,
        expect![[r#"
            the call was cancelled
            ["idle","cancelled"]
            ["running",null,true]
            its own time
        "#]],
    );
}

#[test]
fn an_agent_is_a_directory_as_soon_as_it_was_created() {
    let mut house = TestHost::new();
    house.check(
        r#"
        cd agents/self/agents
        invoke() { exec 3<>control/$1.json; echo "$2" >&3; jq -c '.error.message // .result | if type == "object" then [.agent_id, .state, .deleted] else . end' <&3; exec 3>&-; }
        invoke create '{"agent_id":"ada","about":"Counts."}'
        ls -d ../../ada/chat ../../ada/memory
        echo hi > ../../ada/chat/control/input; head -c 5 ../../ada/chat/latest.txt; echo
        invoke create '{"agent_id":"ada"}'
        invoke create '{"agent_id":"self"}'
        invoke create '{"agent_id":"../x"}'
        invoke pause '{"agent_id":"ada"}'
        invoke delete '{"agent_id":"charon"}'
        "#,
        expect![[r#"
            ["ada","idle",null]
            ../../ada/chat
            ../../ada/memory
            Hello
            "there is an agent `ada` already"
            "`self` cannot be an agent's id: up to 64 of a-z, 0-9, _ and -, a letter or digit first, and not self"
            "`../x` cannot be an agent's id: up to 64 of a-z, 0-9, _ and -, a letter or digit first, and not self"
            ["ada","paused",null]
            "charon stands in the mountspec; take it out there"
            ! environment: line 3: echo: write error: Invalid argument
            ! environment: line 3: echo: write error: Invalid argument
        "#]],
    );
    house.restart();
    house.check(
        r#"
        cd agents/self/agents
        invoke() { exec 3<>control/$1.json; echo "$2" >&3; jq -c '.result | [.agent_id, .state, .deleted]' <&3; exec 3>&-; }
        invoke get '{"agent_id":"ada"}'
        jq -r .input ../../ada/chat/history.ndjson
        invoke delete '{"agent_id":"ada","purge":true}'
        ls ../..
        "#,
        expect![[r#"
            ["ada","paused",null]
            hi
            ["ada",null,true]
            charon
            self
        "#]],
    );
    assert!(!house.state().join("agents/ada").exists());
}

#[test]
fn turns_that_are_over_for_long_are_forgotten_and_one_that_runs_is_not() {
    let wait = call("file_read", json!({"path": "/agents/self/events/sources/user/go.json"}));
    let house = scripted(&[reply("one"), wait, reply("two")]);
    house.check(
        "cd agents/self/chat; echo 1 > control/input; cat latest.txt; echo 2 > control/input",
        expect![["one\n"]],
    );
    let database = acheron_store::Connection::open(house.state().join(acheron_store::FILE)).unwrap();
    let kept = || acheron::state::turns::jobs(&database, "charon").unwrap();
    crate::common::until("the second turn is written down", || kept().len() == 2);
    database.execute("UPDATE turn_records SET record = json_set(record, '$.at_ms', 1)", []).unwrap();
    // as it is done now and then
    house.inside(async |host| acheron::host::tidy::tidy(&host.state).await).unwrap();
    assert_eq!(kept().len(), 1);
    house.check(
        r#"cd agents/self; echo '{"event_type":"user","parameter":"go"}' > events/control/signal.json; cat chat/latest.txt"#,
        expect![["two\n"]],
    );
}

#[test]
fn the_guide_runs_a_harmless_command_and_its_thoughts_can_be_followed() {
    TestHost::new().check(
        r#"
        cd agents/self
        ls jobs | grep -c job
        heard=$(mktemp)
        tail -n +1 -f thoughts/history.ndjson | grep -m 2 -o '"round":[0-9]*,"source":"[a-z]*"' > $heard &
        echo 'what time is it? run something' > chat/control/input
        ls jobs | grep -q job && echo a new job is listed at once
        grep -c . chat/latest.txt > /dev/null && jq -r '.service + "." + .operation' jobs/*/status.json | sort | uniq -c | tr -s ' '
        wait
        cat $heard; rm $heard
        jq -c '[.state, .round > 1]' thoughts/status.json
        "#,
        expect![[r#"
            0
            a new job is listed at once
             1 chat.turn
             2 terminal.exec
            "round":1,"source":"text"
            "round":2,"source":"text"
            ["idle",true]
        "#]],
    );
}
