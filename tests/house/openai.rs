//! Agents as models of an OpenAI-compatible API, asked by the clients that people use.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;

use expect_test::expect;
use serde_json::{Value, json};

use crate::common::{GUARD, command, until};
use crate::served::{Served, bearer, token};
use crate::test_host::TestHost;

/// What is installed from the registries, once for all runs.
const PYTHON: [&str; 2] = ["openai==3.49.0", "llm==0.36"];
const NPM: &str = "openai@6.49.0";

fn installed(home: &Path, sign: &str, install: &[&str]) -> bool {
    if home.join(sign).exists() {
        return true;
    }
    let mut command = Command::new("timeout");
    command.arg((4 * GUARD.as_secs()).to_string()).args(install).arg(home);
    // Node does not read the certificates of the system by itself.
    command.env("NODE_EXTRA_CA_CERTS", "/etc/ssl/certs/ca-certificates.crt");
    let output = command.output().unwrap();
    if !output.status.success() {
        eprintln!("NOT TESTED: {install:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
    output.status.success()
}

fn python_packages() -> Option<PathBuf> {
    let home = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{}-{}", PYTHON[0], PYTHON[1]));
    let install =
        [&["python3", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"], &PYTHON[..], &["--target"]];
    installed(&home, "llm/__init__.py", &install.concat()).then_some(home)
}

fn npm_packages() -> Option<PathBuf> {
    let home = Path::new(env!("CARGO_TARGET_TMPDIR")).join(NPM.replace('@', "-npm-"));
    let install = ["npm", "install", "--no-audit", "--no-fund", NPM, "--prefix"];
    installed(&home, "node_modules/openai/package.json", &install).then_some(home)
}

/// Two agents: charon answers by a script, ada by whoever answers for her.
fn house() -> TestHost {
    let reply = |text: &str| {
        let write =
            json!({"name": "file_write", "arguments": {"path": "agents/self/chat/control/reply", "content": text}});
        json!({"repeat": true, "answer": {"tool_calls": [write]}})
    };
    let spec = json!({"layout": "acheron-1", "model": {"kind": "script", "name": "script.ndjson"},
        "agents": {"charon": {}, "ada": {"model": {"kind": "external"}}}, "default_agent": "charon"});
    TestHost::prepared(&spec.to_string(), |here| {
        std::fs::write(here.join("script.ndjson"), format!("{}\n", reply("Across the river, for an obol."))).unwrap();
    })
}

#[test]
fn a_turn_is_a_completion_and_a_client_that_goes_away_cancels_it() {
    let house = house();
    let served = Served::begin(&house, &["--openai"]);
    let auth = bearer(&token(&house, &["create", "--operator"]));
    let known = [("authorization", auth.as_str())];
    let ask = |path: &str, body: Value| served.ask("POST", path, &known, &body.to_string());
    let models = served.ask("GET", "/v1/models", &known, "").json();
    let names: Vec<_> = models["data"].as_array().unwrap().iter().map(|model| model["id"].clone()).collect();
    assert_eq!(names, ["ada", "charon"]);
    let hi = json!([{"role": "system", "content": "x"}, {"role": "user", "content": "Where to?"}]);
    let whole = ask("/v1/chat/completions", json!({"model": "charon", "messages": hi})).json();
    assert_eq!(whole["choices"][0]["message"]["content"], "Across the river, for an obol.");
    assert!(whole["usage"]["total_tokens"].as_u64().unwrap() > 0, "{whole}");
    let stream = ask("/v1/chat/completions", json!({"model": "charon", "messages": hi, "stream": true})).body;
    assert!(stream.ends_with("data: [DONE]\n\n") && !stream.contains("\"usage\""), "{stream}");
    let response = ask("/v1/responses", json!({"model": "charon", "input": "And back?"})).json();
    assert_eq!(response["output"][0]["content"][0]["text"], "Across the river, for an obol.");
    let follow =
        json!({"model": "charon", "input": "x", "previous_response_id": response["id"], "conversation": "conv_charon"});
    assert_eq!(ask("/v1/responses", follow).status, 200);
    // The agent keeps one conversation, in which the last message of each request was new.
    house.check(
        "jq -r .input agents/charon/chat/history.ndjson",
        expect![[r#"
            Where to?
            Where to?
            And back?
            x
        "#]],
    );
    for (path, body, status) in [
        ("/v1/chat/completions", json!({"model": "nobody", "messages": hi}), 404),
        ("/v1/chat/completions", json!({"model": "../charon", "messages": hi}), 404),
        ("/v1/chat/completions", json!({"model": "charon", "messages": []}), 400),
        ("/v1/chat/completions", json!({"model": "charon", "messages": hi, "metadata": {"conversation_id": "c"}}), 404),
        ("/v1/responses", json!({"model": "charon", "input": "x", "conversation": "conv_other"}), 404),
        ("/v1/responses", json!({"model": "charon", "input": "x", "previous_response_id": "resp_none"}), 404),
    ] {
        let refused = ask(path, body.clone());
        assert_eq!(refused.status, status, "{body}: {refused:?}");
        assert!(refused.json()["error"]["message"].as_str().unwrap().len() > 10, "{refused:?}");
    }
    // An agent talks to those that it sees, and not to itself.
    let ada = bearer(&token(&house, &["create", "--agent", "ada"]));
    assert_eq!(served.ask("GET", "/v1/models", &[("authorization", &ada)], "").json()["data"], json!([]));

    let state = || house.says("jq -r .state agents/ada/chat/status.json");
    for stream in [false, true] {
        let body =
            json!({"model": "ada", "messages": [{"role": "user", "content": "hi"}], "stream": stream}).to_string();
        let connection = served.send("POST", "/v1/chat/completions", &known, &body);
        until("the turn runs", || state() == "running\n");
        drop(connection);
        until("the turn is cancelled", || state() == "idle\n");
        assert_eq!(house.says("tail -n 1 agents/ada/chat/history.ndjson | jq -r .error.code"), "cancelled\n");
    }
    // A turn that fails after its stream began says so in the stream.
    let body = json!({"model": "ada", "messages": [{"role": "user", "content": "hi"}], "stream": true}).to_string();
    let mut connection = served.send("POST", "/v1/chat/completions", &known, &body);
    until("the turn runs", || state() == "running\n");
    house.says("echo > agents/ada/jobs/last/control/cancel");
    let mut said = String::new();
    connection.read_to_string(&mut said).unwrap();
    assert!(said.contains(r#""code":"cancelled""#) && !said.contains("[DONE]"), "{said}");
}

const PYTHON_CLIENT: &str = r#"
import os, openai
client = openai.OpenAI(base_url=os.environ["URL"] + "/v1", api_key=os.environ["TOKEN"])
print([model.id for model in client.models.list()])
hi = [{"role": "user", "content": [{"type": "text", "text": "Where to?"}]}]
said = client.chat.completions.create(model="charon", messages=hi, temperature=0)
print(said.choices[0].message.content, said.choices[0].finish_reason, said.usage.total_tokens > 0)
stream = client.chat.completions.create(model="charon", messages=hi, stream=True, stream_options={"include_usage": True})
chunks = list(stream)
print("".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices), chunks[-1].usage.total_tokens > 0)
response = client.responses.create(model="charon", input="Where to?")
print(response.output_text, response.status, response.usage.output_tokens > 0)
with client.responses.stream(model="charon", input="Where to?", previous_response_id=response.id) as events:
    kinds = [event.type for event in events]
    print(kinds[0], kinds[-1], events.get_final_response().output_text)
for call in [lambda: client.chat.completions.create(model="nobody", messages=hi),
             lambda: client.responses.create(model="charon", input="x", conversation="conv_other"),
             lambda: openai.OpenAI(base_url=os.environ["URL"] + "/v1", api_key="ach_wrong").models.list()]:
    try: call()
    except openai.APIStatusError as error: print(type(error).__name__, error.code)
"#;

#[test]
fn the_python_sdk_and_llm_talk_to_an_agent() {
    let Some(packages) = python_packages() else { return };
    let house = house();
    let (served, word) = (Served::begin(&house, &[]), token(&house, &["create", "--operator"]));
    let run = |words: &[&str]| {
        let mut command = command(&house.here(), words);
        command.env("PYTHONPATH", &packages).env("URL", &served.url).env("TOKEN", &word);
        command.env("LLM_USER_PATH", house.here().join("llm"));
        let output = command.output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
    };
    expect![[r#"
        ['ada', 'charon']
        Across the river, for an obol. stop True
        Across the river, for an obol. True
        Across the river, for an obol. completed True
        response.created response.completed Across the river, for an obol.
        NotFoundError not_found
        NotFoundError not_found
        AuthenticationError forbidden
    "#]]
    .assert_eq(&run(&["python3", "-c", PYTHON_CLIENT]));
    let folder = house.here().join("llm");
    std::fs::create_dir(&folder).unwrap();
    let models =
        format!("- model_id: charon\n  model_name: charon\n  api_base: {}/v1\n  api_key_name: acheron\n", served.url);
    std::fs::write(folder.join("extra-openai-models.yaml"), models).unwrap();
    run(&["python3", "-m", "llm", "keys", "set", "acheron", "--value", &word]);
    let said = run(&["python3", "-m", "llm", "-m", "charon", "Where to?"]);
    assert_eq!(said, "Across the river, for an obol.\n");
}

const NODE_CLIENT: &str = r#"
import OpenAI from "openai";
const client = new OpenAI({baseURL: process.env.URL + "/v1", apiKey: process.env.TOKEN});
const messages = [{role: "user", content: "Where to?"}];
const said = await client.chat.completions.create({model: "charon", messages});
console.log(said.choices[0].message.content);
let text = "";
for await (const chunk of await client.chat.completions.create({model: "charon", messages, stream: true})) text += chunk.choices[0].delta.content ?? "";
console.log(text);
console.log((await client.responses.create({model: "charon", input: "Where to?"})).output_text);
try { await client.chat.completions.create({model: "nobody", messages}); } catch (error) { console.log(error.constructor.name, error.code); }
"#;

#[test]
fn the_npm_sdk_talks_to_an_agent() {
    let Some(packages) = npm_packages() else { return };
    let house = house();
    let (served, word) = (Served::begin(&house, &[]), token(&house, &["create", "--operator"]));
    std::fs::write(packages.join(format!("client-{}.mjs", std::process::id())), NODE_CLIENT).unwrap();
    let file = packages.join(format!("client-{}.mjs", std::process::id()));
    let mut command = command(&house.here(), &["node", file.to_str().unwrap()]);
    let output = command.env("URL", &served.url).env("TOKEN", &word).output().unwrap();
    std::fs::remove_file(file).unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    expect![[r#"
        Across the river, for an obol.
        Across the river, for an obol.
        Across the river, for an obol.
        NotFoundError not_found
    "#]]
    .assert_eq(&said);
}
