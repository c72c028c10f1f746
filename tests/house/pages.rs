//! Every path that a page names exists, and every JSON that it shows is accepted or produced: documentation, library,
//! contracts, AGENTS.md.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use regex::Regex;
use serde_json::{Map, Value, json};

use crate::common::documents;
use crate::test_host::TestHost;
use acheron::spec::Spec;

/// A page, and the directory from which its short names are meant.
struct Page {
    name: String,
    text: String,
    dir: PathBuf,
}

fn top() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A tree in which there is one of everything.
fn lived_in() -> TestHost {
    let house = TestHost::prepared(acheron::spec::DEFAULT, |here| std::fs::create_dir(here.join("src")).unwrap());
    let said = house.says(
        r#"
        cd agents/self/
        ask() { echo "$2" > $1; cat ${1%%/control*}/result.json > /dev/null; }
        ask search_code/control/invoke.json '{"op":"search","arguments":{"query":"x"},"correlation_id":"mine"}'
        ask memory/control/create.json '{"kind":"note","name":"river","content":"x"}'
        ask prompts/control/open.json '{"prompt":"review/change","id":"r1","params":{"Change":{"title":"t","diff":"d"}}}'
        ask dm/control/new_campaign.json '{"id":"c1","cartridge":"brinewick","seed":7}'
        ask dm/control/init.json '{"answers":{"preset":"Mystery Investigation","pc_name":"Ann","pc_strengths":"clever, charming"},"confirm":true}'
        ask phases/control/run.json '{"query":"How do we mend trust?","session_id":"tour"}'
        ask recall/control/write.json '{"path":"semantic/River.md","text":"[[Nowhere]]"}'
        ask recall/control/turn.json '{"message":"River?"}'
        ask recall/control/archive.json "{\"conversation\":\"$(ls recall/conversations)\"}"
        ask recall/control/consolidate.json '{}'
        ask terminal/control/create.json '{"session_id":"work"}'
        ask mail/control/send.json '{"to":"charon","body":"a word to myself"}'
        ask queues/control/put.json '{"queue":"jobs","body":"x"}'
        ask queues/control/take.json '{"queue":"jobs"}'
        ask queues/control/fail.json "{\"lease\":\"$(jq -r .result.lease queues/result.json)\",\"dead\":true}"
        ask queues/control/put.json '{"queue":"jobs","body":"y"}'
        echo '{"name":"charon"}' > ../../projects/here/views/control/create.json; cat ../../projects/here/views/result.json > /dev/null
        echo hi > chat/control/input; cat chat/latest.txt > /dev/null
        "#,
    );
    assert_eq!(said, "");
    house
}

/// Every page that somebody is told to read.
fn pages(house: &TestHost) -> Vec<Page> {
    let root = house.root();
    let me = root.join("agents/self");
    let served = |path: &str| Page {
        name: path.to_owned(),
        text: std::fs::read_to_string(root.join(path)).unwrap(),
        dir: root.join(path).parent().unwrap().to_owned(),
    };
    // Short names in the documentation are meant from the root of the tree, or from the top of the repository.
    let mut all: Vec<Page> =
        documents().into_iter().map(|(name, text)| Page { name, text, dir: root.clone() }).collect();
    all.extend(["README.md", "AGENTS.md", "global/library/Index.md"].map(served));
    let names = |dir: &Path| {
        let mut names: Vec<_> =
            std::fs::read_dir(dir).unwrap().map(|it| it.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    };
    all.extend(
        names(&root.join("global/library/topics")).iter().map(|it| served(&format!("global/library/topics/{it}"))),
    );
    for name in names(&me) {
        for page in ["README.md", "control/README.md"] {
            let path = format!("agents/self/{name}/{page}");
            if root.join(&path).is_file() {
                all.push(served(&path));
            }
        }
    }
    for path in ["nodes/local/README.md", "projects/here/README.md", "agents/self/jobs/last/README.md"] {
        all.push(served(path));
    }
    assert!(all.len() > 40, "only {} pages", all.len());
    all
}

/// What stands in backquotes, and the blocks that are indented: all code that is not run by another test.
fn code(text: &str) -> Vec<String> {
    static FENCE: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"(?s)```.*?```").unwrap());
    static SPAN: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"`([^`]+)`").unwrap());
    static BLOCK: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"(?m)(?:^ {4}.*\n)+").unwrap());
    let text = FENCE.replace_all(text, "");
    let spans = SPAN.captures_iter(&text).map(|it| it[1].to_owned());
    spans.chain(BLOCK.find_iter(&text).map(|it| it.as_str().to_owned())).collect()
}

/// The words of a piece of code that are paths.
fn paths(code: &str) -> Vec<String> {
    static FILE: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"^[A-Za-z0-9_<>.-]+\.(json|md|txt|ndjson|rs|py|sh|service)$").unwrap());
    let method = ["GET ", "HEAD ", "POST "].iter().any(|method| code.starts_with(method));
    // What stands after a method is an address of HTTP.
    if method || code.trim_start().starts_with(['{', '"', '[']) {
        return Vec::new();
    }
    let words = code.split(|c: char| c.is_whitespace() || c == '\'').map(|word| {
        let word = word.rsplit("<>").next().unwrap_or_default();
        word.trim_end_matches(['.', ',', ';', ':', ')'])
    });
    let path = |word: &&str| {
        let odd = word.contains("://")
            || word.contains(['*', '$', '(', '"', '=', '|', '…'])
            || word.starts_with(['~', '-', '<', '#']);
        !odd && (FILE.is_match(word) || word.trim_matches('/').contains('/') || word.ends_with('/'))
    };
    words.filter(path).map(str::to_owned).collect()
}

/// Whether there is such a name; `<word>` stands for any.
fn there(at: &Path, rest: &[&str]) -> bool {
    let Some((first, rest)) = rest.split_first() else {
        // A page of the wiki may be named without its ending.
        let page = at.with_extension("md");
        return at.symlink_metadata().is_ok() || (at.extension().is_none() && page.symlink_metadata().is_ok());
    };
    // What can be waited for is there without being listed.
    let known = [
        ("<ms>", "1"),
        ("<unix_ms>", "1"),
        ("<parameter>", "go"),
        ("<correlation_id>", "mine"),
        ("<n>.ndjson", "0.ndjson"),
    ];
    let first = known.iter().fold((*first).to_owned(), |name, (from, to)| name.replace(from, to));
    if !first.contains('<') {
        return there(&at.join(first), rest);
    }
    let pattern = Regex::new(r"<[^>]*>").unwrap().replace_all(&regex::escape(&first), ".+").replace(r"\", "");
    let pattern = Regex::new(&format!("^{pattern}$")).unwrap();
    let names = std::fs::read_dir(at).into_iter().flatten().flatten().map(|it| it.file_name().into_string().unwrap());
    names.filter(|name| pattern.is_match(name)).any(|name| there(&at.join(name), rest))
}

/// Names of the machine, of a sandbox, of a project, of sections of a prompt and of moves, which are no names of the tree.
const ELSEWHERE: &[&str] = &[
    "/",
    "/dev/fuse",
    "/tmp",
    "/home",
    "/service",
    "./ns",
    "a/b",
    "node/agent",
    "/fs/<path>",
    "/fs/<file>",
    "/v1/models",
    "/v1/chat/completions",
    "/v1/responses",
    "/v1/traces",
    "text/event-stream",
    "application/problem+json",
    // Of a server of the Model Context Protocol, which this host has none of.
    "tools/",
    "tools/<name>.md",
    "resources/",
    "jobs/<id>/files/",
    ".git/hooks",
    ".mcp.json",
    ".github/workflows",
    "LOOK/ACT",
    // Of another host, of a prompt of one's own and of an editor; approvals are made in `approvals.rs`.
    "approvals/<id>/decision",
    "nodes/styx/services/search_code/control/search.json",
    "/nodes/<node>/mail/<agent>/inbox",
    "host>/<agent>",
    "styx/charon",
    "prompts/notes/short/prompt.json",
    "prompt.json",
    "task.md",
    "look/security",
    "ns/key",
    "ns/key/section",
    "settings.json",
    "/etc/acheron",
    // Where a mountspec names skills; `skills.rs` has them.
    "global/library/skills/",
    "/global/library/skills/README.md",
    "/global/library/skills/<name>/SKILL.md",
    ".agents/skills",
    ".claude/skills",
];

#[test]
fn every_path_that_a_page_names_is_there() {
    let house = lived_in();
    let (root, mut missing, mut found) = (house.root(), Vec::new(), 0);
    let me = root.join("agents/self");
    let within = |path: &str| std::fs::read_dir(me.join(path)).unwrap().next().unwrap().unwrap().path();
    let mut places = vec![root.clone(), me.clone(), root.join("global/library"), top().to_owned(), house.here()];
    places.extend(std::fs::read_dir(&me).unwrap().map(|it| it.unwrap().path()));
    places.extend(["prompts/open/r1", "dm/campaigns/c1", "memory/items/river"].map(|it| me.join(it)));
    places.extend(
        ["phases/runs", "recall/conversations", "recall/sleep", "terminal/sessions", "prompts/templates/review"]
            .map(within),
    );
    places.extend(["events/sources", "queues/names/jobs"].map(|it| me.join(it)));
    let cartridge = top().join("global-library/cartridges/brinewick");
    places.extend([cartridge.join("locations"), cartridge]);
    // The control files, the names of prompts, and the wiki as it lies on the disk.
    places.extend(
        ["symbols/control", "events/control", "mail/control", "queues/control", "prompts/templates"]
            .map(|it| me.join(it)),
    );
    places.extend(["projects/here", "projects/here/views/charon"].map(|it| root.join(it)));
    // The chat came last, so that this is a turn.
    places.push(me.join("jobs/last"));
    let store = house.state().join("agents/charon/recall/store");
    places.extend([house.state(), store.join("semantic"), store]);
    // Looked for once in every place: pages say the same words.
    let mut known: BTreeMap<(PathBuf, String), bool> = BTreeMap::new();
    let mut has = |place: &Path, word: &str| {
        let parts: Vec<&str> = word.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
        *known.entry((place.to_owned(), word.to_owned())).or_insert_with(|| there(place, &parts))
    };
    for page in pages(&house) {
        for word in code(&page.text).iter().flat_map(|code| paths(code)) {
            let mut near = || has(&page.dir, &word) || places.iter().any(|place| has(place, &word));
            let elsewhere = ELSEWHERE.contains(&word.as_str());
            let here = if word.starts_with('/') { has(&root, &word) } else { near() };
            match elsewhere || here {
                true => found += 1,
                false => missing.push(format!("{}: {word}", page.name)),
            }
        }
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
    assert!(found > 200, "only {found} paths were found");
}

/// The JSON in a piece of code: an object, or the inside of one.
fn fragment(code: &str) -> Option<Result<Value, String>> {
    static KEY: LazyLock<Regex> = LazyLock::new(|| Regex::new(r#"^"[a-z_]+": "#).unwrap());
    let code = code.trim().trim_start_matches("⟐CMD ");
    let whole = match code {
        code if code.starts_with("{\"") || code.starts_with("[{") => code.to_owned(),
        code if KEY.is_match(code) => format!("{{{code}}}"),
        _ => return None,
    };
    Some(serde_json::from_str(&whole.replace("<agent>", "charon")).map_err(|err| format!("{code}: {err}")))
}

/// Everything that says what an object may hold: of each schema only its properties, since a fragment has few of them.
fn schemas(house: &TestHost) -> Vec<jsonschema::Validator> {
    let root = house.root().join("agents/self");
    let services: Vec<Value> =
        serde_json::from_slice(&std::fs::read(root.join("services/SERVICES.json")).unwrap()).unwrap();
    let mut all = Vec::new();
    let paths = services.iter().filter(|it| it["has_invoke"] == true).map(|it| it["service_path"].as_str().unwrap());
    for path in paths.chain(["/projects/here/views/charon"]) {
        let path = house.root().join(path.trim_start_matches('/')).join("SCHEMA.json");
        let schema: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        all.extend(loosened(&schema));
    }
    // Parts of a mountspec may be shown without the whole.
    all.extend(loosened(&Spec::schema()));
    all
}

fn loosened(schema: &Value) -> Vec<jsonschema::Validator> {
    let defs = &schema["$defs"];
    let parts = defs.as_object().into_iter().flatten().map(|(_, part)| part).chain([schema]);
    let parts = parts.filter(|part| part["properties"].is_object()).map(|part| {
        json!({"$defs": defs, "type": "object", "properties": part["properties"], "additionalProperties": false})
    });
    parts.map(|part| jsonschema::draft202012::new(&part).unwrap()).collect()
}

/// Objects that no schema tells of, by their keys: what is read, and what the loop of phases hears.
const ANSWERS: [&[&str]; 9] = [
    &["ok", "job_id", "result"],
    &["has_invoke"],
    &["progress"],
    &["error"],
    &["_meta"],
    &["action", "query"],
    &["stale"],
    // in the description of a section
    &["fails_unless"],
    &["use"],
];

/// What has no schema is tried: on `wait.json`, on `signal.json`, and as a part of a catalogue.
fn heard(house: &TestHost, value: &Map<String, Value>) -> bool {
    let me = house.root().join("agents/self");
    let with = |mut whole: Value| {
        whole.as_object_mut().unwrap().extend(value.clone());
        whole.to_string()
    };
    let wait = with(json!({"paths": ["/agents/self/events/sources/user.json"]}));
    let (control, signal) = (me.join("events/control"), with(json!({"event_type": "user"})));
    if std::fs::write(control.join("wait.json"), wait).is_ok()
        || std::fs::write(control.join("signal.json"), signal).is_ok()
    {
        return true;
    }
    [json!({"catalogue": value}), json!({"kits": [value]}), json!({"agents": value})].iter().any(|import| {
        if std::fs::write(me.join("symbols/control/import.json"), import.to_string()).is_err() {
            return false;
        }
        let result: Value = serde_json::from_slice(&std::fs::read(me.join("symbols/result.json")).unwrap()).unwrap();
        result["ok"] == true && result["result"] != json!({"stored": 0, "kept": 0})
    })
}

#[test]
fn every_json_that_a_page_shows_is_taken_or_given_by_somebody() {
    let house = lived_in();
    let schemas = schemas(&house);
    let mut known = 0;
    for page in pages(&house) {
        for shown in code(&page.text).iter().filter_map(|code| fragment(code)) {
            let value = shown.unwrap_or_else(|why| panic!("{}: {why}", page.name));
            for one in value.as_array().cloned().unwrap_or_else(|| vec![value.clone()]) {
                let fields = one.as_object().unwrap_or_else(|| panic!("{}: {one}", page.name));
                let keys: Vec<&str> = fields.keys().map(String::as_str).collect();
                let answer = ANSWERS.iter().any(|answer| keys.iter().all(|key| answer.contains(key)));
                let takes = answer || schemas.iter().any(|schema| schema.is_valid(&one)) || heard(&house, fields);
                assert!(takes, "{}: nobody takes or gives {one}", page.name);
                known += 1;
            }
        }
    }
    assert!(known > 40, "only {known} were found");
}

/// Blocks marked `json` are mountspecs, whole; those with `sections` are prompts, which `prompts.rs` reads.
#[test]
fn every_mountspec_of_a_page_is_sound() {
    let house = lived_in();
    let mut known = 0;
    for page in pages(&house) {
        let blocks = page.text.split("```json\n").skip(1).filter_map(|rest| rest.split("```").next());
        for spec in blocks.filter(|block| !block.contains("\"sections\"")) {
            let faults = Spec::check(spec).err();
            assert!(faults.is_none(), "{}: {faults:?}\n{spec}", page.name);
            known += 1;
        }
    }
    assert!(known >= 3, "only {known} were found");
}
