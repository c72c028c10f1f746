//! Contracts are generated, and true: every example in every README runs, every schema is one.

use serde_json::Value;

use crate::common::session;
use crate::test_host::TestHost;

/// The default house, and one whose services are programs, in an agent's directory and under `/nodes/local/services`.
fn houses() -> [TestHost; 2] {
    let programs = include_str!("../../mountspec/examples/programs.json");
    let house = TestHost::prepared(programs, crate::terminal::examples);
    assert!(services(&house).iter().any(|it| it["service_path"] == "/nodes/local/services/almanac"));
    [TestHost::new(), house]
}

/// The services of the default agent, as SERVICES.json lists them.
fn services(house: &TestHost) -> Vec<Value> {
    let text = std::fs::read(house.root().join("agents/self/services/SERVICES.json")).unwrap();
    serde_json::from_slice(&text).unwrap()
}

fn read(house: &TestHost, path: &str) -> String {
    let path = house.root().join(path.trim_start_matches('/'));
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn json(house: &TestHost, path: &str) -> Value {
    serde_json::from_str(&read(house, path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

#[test]
fn every_service_has_the_same_names() {
    for house in houses() {
        let all = services(&house);
        assert!(all.iter().any(|it| it["service_id"] == "library" && it["has_invoke"] == false));
        same_names(&house, all);
    }
}

fn same_names(house: &TestHost, all: Vec<Value>) {
    for service in all {
        for key in ["node_id", "service_id", "service_path", "invoke_path", "has_invoke", "scope"] {
            assert!(service.get(key).is_some(), "{service} has no {key}");
        }
        let path = service["service_path"].as_str().unwrap();
        for name in ["README.md", "SCHEMA.json", "CAPS.json", "OPS.json", "PERMISSIONS.json"] {
            assert!(!read(house, &format!("{path}/{name}")).is_empty(), "{path}/{name}");
        }
        if service["has_invoke"] == true {
            for name in ["status.json", "control/README.md", "control/invoke.json"] {
                assert!(!read(house, &format!("{path}/{name}")).is_empty(), "{path}/{name}");
            }
            let ops = json(house, &format!("{path}/OPS.json"));
            for (op, told) in ops.as_object().unwrap() {
                let control = told["control_path"].as_str().unwrap();
                assert_eq!(control, format!("control/{op}.json"));
                assert!(house.root().join(path.trim_start_matches('/')).join(control).is_file());
            }
        }
    }
}

#[test]
fn every_schema_is_json_schema_2020_12_and_holds_for_the_examples() {
    houses().iter().for_each(schemas_hold);
}

fn schemas_hold(house: &TestHost) {
    for service in services(house) {
        let path = service["service_path"].as_str().unwrap();
        let schema = json(house, &format!("{path}/SCHEMA.json"));
        assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema", "{path}");
        jsonschema::draft202012::meta::validate(&schema).unwrap_or_else(|error| panic!("{path}: {error}"));
        if service["has_invoke"] == true {
            let validator = jsonschema::draft202012::new(&schema).unwrap();
            let template = json(house, &format!("{path}/control/invoke.json"));
            assert!(validator.is_valid(&template), "{path}: {template}");
        }
    }
}

#[test]
fn every_example_of_every_readme_works_when_pasted() {
    houses().iter().for_each(examples_work);
}

fn examples_work(house: &TestHost) {
    let mut ran = 0;
    for service in services(house) {
        let path = service["service_path"].as_str().unwrap();
        let readme = read(house, &format!("{path}/README.md"));
        let dir = house.root().join(path.trim_start_matches('/'));
        for block in readme.split("```sh\n").skip(1).filter_map(|rest| rest.split("```").next()) {
            let said = session(&dir, block);
            assert!(!said.lines().any(|line| line.starts_with("! ")), "{path}: {block}\n{said}");
            ran += 1;
        }
    }
    assert!(ran > 5, "only {ran} examples ran");
}

/// A page that is not so is written anew with `UPDATE_EXPECT=1`.
#[test]
fn the_library_has_the_readme_of_every_service() {
    let house = TestHost::new();
    let dir = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("global-library/services");
    let update = std::env::var_os("UPDATE_EXPECT").is_some_and(|value| value == "1");
    let mut names = std::collections::BTreeSet::new();
    for service in services(&house).iter().filter(|it| it["scope"] == "agent_namespace") {
        let readme = read(&house, &format!("{}/README.md", service["service_path"].as_str().unwrap()));
        let name = format!("{}.md", service["service_id"].as_str().unwrap());
        let page = dir.join(&name);
        match update {
            true => std::fs::write(&page, readme).unwrap(),
            false => assert!(
                std::fs::read_to_string(&page).is_ok_and(|text| text == readme),
                "{} is not the README of its service; UPDATE_EXPECT=1 writes it",
                page.display()
            ),
        }
        names.insert(name);
    }
    let pages = std::fs::read_dir(&dir).unwrap().map(|page| page.unwrap().file_name().into_string().unwrap());
    assert_eq!(pages.collect::<std::collections::BTreeSet<_>>(), names, "a page has no service");
    let reserved = acheron::spec::BUILT_IN.map(|name| format!("{name}.md"));
    assert_eq!(names, reserved.into(), "a name that a program of the mountspec could take");
}

/// Payloads that may break a schema: an unknown key, each value of another type, each required key left out.
fn wrong_payloads(arguments: &Value, good: &Value) -> Vec<Value> {
    let changed = |key: &str, value: Value| {
        let mut payload = good.clone();
        payload[key] = value;
        payload
    };
    let mut all = vec![changed("no_such_key", 1.into())];
    for key in arguments["properties"].as_object().into_iter().flatten().map(|(key, _)| key) {
        all.extend(
            [serde_json::json!({"x": []}), serde_json::json!([[]]), serde_json::json!(-1.5), serde_json::json!(true)]
                .map(|value| changed(key, value)),
        );
        let mut without = good.clone();
        without.as_object_mut().unwrap().remove(key);
        all.push(without);
    }
    all
}

/// Generated from the contracts: whatever breaks the schema of an operation fails the write.
#[test]
fn a_payload_that_breaks_its_schema_fails_the_write_of_every_operation() {
    let mut tried = 0;
    for house in houses() {
        for service in services(&house).iter().filter(|service| service["has_invoke"] == true) {
            let path = service["service_path"].as_str().unwrap();
            let schema = json(&house, &format!("{path}/SCHEMA.json"));
            let validator = jsonschema::draft202012::new(&schema).unwrap();
            for op in json(&house, &format!("{path}/OPS.json")).as_object().unwrap().keys() {
                let control = format!("{path}/control/{op}.json");
                let good = json(&house, &control);
                let properties = serde_json::json!({"properties": good});
                for payload in wrong_payloads(&properties, &good) {
                    if validator.is_valid(&serde_json::json!({"op": op, "arguments": payload})) {
                        continue;
                    }
                    let file = house.root().join(control.trim_start_matches('/'));
                    let error = std::fs::write(&file, payload.to_string()).expect_err(&format!("{control} {payload}"));
                    assert_eq!(error.raw_os_error(), Some(libc::EINVAL), "{control} {payload}: {error}");
                    let status = json(&house, &format!("{path}/status.json"));
                    assert_eq!(status["error"]["code"], "invalid_payload", "{control} {payload}: {status}");
                    tried += 1;
                }
            }
        }
    }
    assert!(tried > 200, "{tried} payloads");
}
