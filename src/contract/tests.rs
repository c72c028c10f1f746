use expect_test::{Expect, expect};
use proptest::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::*;
use acheron_base::Code;

/// Commands of every shape that a service may have.
#[derive(Debug, Deserialize, JsonSchema, PartialEq)]
#[serde(tag = "op", content = "arguments", rename_all = "snake_case")]
enum Command {
    /// Finds lines that match a pattern.
    ///
    /// Files that git ignores are left out.
    Search {
        /// What to look for.
        query: String,
        /// Where to begin.
        #[serde(default)]
        path: Option<String>,
        #[serde(default = "two_hundred")]
        max_results: u32,
        #[serde(default)]
        filters: Vec<Filter>,
    },
    /// Puts something away.
    Put(Thing),
    /// Lists what is indexed.
    List {},
    /// Forgets everything.
    Clear,
}

fn two_hundred() -> u32 {
    200
}

#[derive(Debug, Deserialize, JsonSchema, PartialEq)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Filter {
    Glob { pattern: String },
    Size { at_most: u64 },
}

#[derive(Debug, Deserialize, Serialize, JsonSchema, PartialEq)]
struct Thing {
    name: String,
    /// How it is kept.
    #[serde(default)]
    mode: Mode,
    #[serde(default)]
    data: Value,
    #[serde(default)]
    labels: std::collections::BTreeMap<String, u8>,
}

#[derive(Debug, Default, Deserialize, Serialize, JsonSchema, PartialEq)]
#[serde(rename_all = "snake_case")]
enum Mode {
    #[default]
    Plain,
    Sealed,
}

#[derive(Serialize, JsonSchema)]
struct Output {
    things: Vec<Thing>,
}

fn operations() -> Vec<Operation> {
    vec![
        Operation::read("search").example(json!({"query": "it's"})).gives::<Vec<String>>(),
        Operation::write("put").example(json!({"name": "x"})).idempotent(),
        Operation::read("list"),
        Operation::execute("clear").deadline(Duration::from_secs(5)),
    ]
}

fn contract() -> Contract {
    Contract::of::<Command, Output>("count", "A place for things.", operations()).unwrap()
}

#[test]
fn an_operation_without_a_command_or_the_reverse_breaks_the_contract() {
    let check = |operations: Vec<Operation>, expected: Expect| {
        expected.assert_eq(&Contract::of::<Command, Output>("count", "", operations).unwrap_err().message);
    };
    check(
        operations()[..3].to_vec(),
        expect!["the contract of count is broken: clear is a command but not among the operations"],
    );
    let mut more = operations();
    more.push(Operation::read("fly"));
    check(more, expect!["the contract of count is broken: fly is an operation but not a command, or listed twice"]);
    let mut wrong = operations();
    wrong[0] = Operation::read("search").example(json!({"qurey": "x"}));
    check(
        wrong,
        expect![[
            r#"the contract of count is broken: the example of search is refused: search: unknown key `qurey`; did you mean query?"#
        ]],
    );
}

#[test]
fn a_refusal_says_what_and_where() {
    let contract = contract();
    let check = |op: &str, arguments: Value, expected: &str| {
        let said = contract.check(op, &arguments).err().map_or("fine".to_owned(), |err| err.message);
        assert_eq!(said, expected, "{op} {arguments}");
    };
    check("search", json!({"query": "x"}), "fine");
    check("search", json!({"query": "x", "path": null, "filters": [{"kind": "size", "at_most": 1}]}), "fine");
    check("serach", json!({}), "count has no operation `serach`; did you mean search?");
    check("fly", json!({}), "count has no operation `fly`; operations are search, put, list, clear");
    check("search", json!({}), "search: query is missing");
    check("search", json!({"qurey": "x"}), "search: unknown key `qurey`; did you mean query?");
    check(
        "search",
        json!({"query": "x", "zebra": 1}),
        "search: unknown key `zebra`; other keys are path, max_results, filters",
    );
    check("search", json!({"query": 5}), "search: query: must be a string, not a number");
    check("search", json!({"query": "x", "path": 5}), "search: path: must be a string or null, not a number");
    check("search", json!({"query": "x", "max_results": -1}), "search: max_results: must be at least 0, not -1");
    check("search", json!({"query": "x", "max_results": 1.5}), "search: max_results: must be a whole number, not 1.5");
    check("search", json!([]), "search: must be an object, not an array");
    check("search", json!({"query": "x", "filters": {}}), "search: filters: must be an array, not an object");
    check(
        "search",
        json!({"query": "x", "filters": [{"kind": "glob", "patern": "*"}]}),
        "search: filters[0]: unknown key `patern`; did you mean pattern?",
    );
    check(
        "search",
        json!({"query": "x", "filters": [{"kind": "gloob"}]}),
        "search: filters[0].kind: `gloob` is not known; did you mean glob?",
    );
    check(
        "search",
        json!({"query": "x", "filters": [{}]}),
        "search: filters[0]: kind is missing; it is one of glob, size",
    );
    check("search", json!({"query": "x", "filters": [7]}), "search: filters[0]: must be an object, not a number");
    check("put", json!({"name": "x", "mode": "seald"}), "put: mode: `seald` is not known; did you mean sealed?");
    check("put", json!({"name": "x", "data": {"any": [1]}, "labels": {"a b": 1}}), "fine");
    check("put", json!({"name": "x", "labels": {"a b": 256}}), "put: labels[\"a b\"]: must be at most 255, not 256");
    check("list", json!({"all": true}), "list: unknown key `all`; there are no other keys");
    check("clear", json!({"now": 1}), "clear: unknown key `now`; there are no other keys");
    check(
        "put",
        json!({"a1": 1, "b1": 1, "c1": 1, "d1": 1}),
        "put: unknown key `a1`; other keys are name, mode, data, labels; unknown key `b1`; other keys are name, mode, data, labels; unknown key `c1`; other keys are name, mode, data, labels; and 2 more",
    );
}

#[test]
fn an_envelope_becomes_a_command() {
    let contract = contract();
    let command =
        |value: Value| contract.envelope(value).and_then(|call| contract.command::<Command>(&call.op, &call.arguments));
    assert_eq!(command(json!({"op": "clear"})).unwrap(), Command::Clear);
    assert_eq!(command(json!({"op": "clear", "arguments": {}})).unwrap(), Command::Clear);
    assert_eq!(command(json!({"op": "list"})).unwrap(), Command::List {});
    let Command::Search { query, max_results, .. } =
        command(json!({"op": "search", "arguments": {"query": "x"}})).unwrap()
    else {
        panic!("not a search");
    };
    assert_eq!((query.as_str(), max_results), ("x", 200));
    let call = contract.arguments("put", json!({"name": "x", "_meta": {"correlation_id": "mine"}})).unwrap();
    assert_eq!(call.correlation_id.as_deref(), Some("mine"));
    assert!(matches!(contract.command(&call.op, &call.arguments).unwrap(), Command::Put(thing) if thing.name == "x"));
}

#[test]
fn an_envelope_that_is_none_is_refused() {
    let contract = contract();
    let table = [
        (json!("x"), "a command must be an object, not a string"),
        (json!({}), "op is missing; operations are search, put, list, clear"),
        (json!({"op": 1}), "op must be a string"),
        (json!({"op": "list", "argumnets": {}}), "unknown key `argumnets`; did you mean arguments?"),
        (
            json!({"op": "search", "query": "x"}),
            "query belongs in `arguments`: {\"op\": \"search\", \"arguments\": {\"query\": …}}",
        ),
        (
            json!({"op": "list", "correlation_id": "a/b"}),
            "correlation_id contains a slash or a control character; it becomes a name in jobs/by/",
        ),
        (
            json!({"op": "list", "correlation_id": ".."}),
            "correlation_id cannot be . or ..; it becomes a name in jobs/by/",
        ),
        (json!({"op": "list", "correlation_id": 7}), "correlation_id must be a string"),
        (json!({"op": "list", "arguments": null}), "list: must be an object, not null"),
    ];
    for (value, expected) in table {
        assert_eq!(contract.envelope(value.clone()).unwrap_err().message, expected, "{value}");
    }
    assert_eq!(contract.envelope(json!({"op": "fly"})).unwrap_err().code, Code::UnknownOperation);
    let meta = contract.arguments("list", json!({"_meta": {"corelation_id": "x"}})).unwrap_err();
    assert_eq!(meta.message, "_meta: unknown key `corelation_id`; did you mean correlation_id?");
}

#[test]
fn the_schema_is_one_and_agrees_with_the_check() {
    let contract = contract();
    assert!(jsonschema::meta::is_valid(contract.schema()), "{}", contract.schema());
    let validator = jsonschema::draft202012::new(contract.schema()).unwrap();
    for operation in &contract.operations {
        let whole = json!({"op": operation.name, "arguments": contract.template(operation)});
        assert!(validator.is_valid(&whole), "{whole}");
    }
    assert!(validator.is_valid(&json!({"op": "list", "correlation_id": "x"})));
    for wrong in [
        json!({"op": "fly"}),
        json!({"op": "search"}),
        json!({"op": "search", "arguments": {"query": "x", "zebra": 1}}),
        json!({"op": "search", "arguments": {"query": "x", "filters": [{"kind": "glob", "pattern": "x", "y": 1}]}}),
        json!({"op": "put", "arguments": {"name": "x", "labels": {"a": 256}}}),
    ] {
        assert!(!validator.is_valid(&wrong), "{wrong}");
        assert!(contract.envelope(wrong).is_err());
    }
    let result = &contract.schema()["$defs"]["search.result"];
    assert_eq!(result["items"], json!({"type": "string"}));
}

#[test]
fn the_pages_are_made_from_the_types() {
    let contract = contract().flag("network");
    expect![[r##"
        # count

        A place for things.

        Write a command, then read `result.json`, which waits for its end; `status.json` says why a write was refused.
        `SCHEMA.json` has every argument and result.

        ## search

        Finds lines that match a pattern.

        Files that git ignores are left out.

        - `query` (string, required): What to look for.
        - `path` (string): Where to begin.
        - `max_results` (integer, 200 if absent)
        - `filters` (array of object)

        ```sh
        echo '{"query":"it'\''s"}' > control/search.json
        cat result.json
        ```

        Effect: read; deadline: 60 s.

        ## put

        Puts something away.

        - `name` (string, required)
        - `mode` (plain | sealed, "plain" if absent): How it is kept.
        - `data` (anything)
        - `labels` (object, {} if absent)

        ```sh
        echo '{"name":"x"}' > control/put.json
        cat result.json
        ```

        Effect: write, may be repeated; it is done, or has failed and changed nothing, when the write returns.

        ## list

        Lists what is indexed.

        ```sh
        echo '{}' > control/list.json
        cat result.json
        ```

        Effect: read; deadline: 60 s.

        ## clear

        Forgets everything.

        ```sh
        echo '{}' > control/clear.json
        cat result.json
        ```

        Effect: execute; deadline: 5 s.
    "##]]
    .assert_eq(&contract.readme());
    expect![[r##"
        # count: control files

        These are written, not replaced; reading one that you have not written shows a template.

        - `invoke.json`: any operation, such as `{"op":"search","arguments":{"query":"it's"}}`, and, if you like, a `correlation_id`
        - `search.json`: Finds lines that match a pattern.
        - `put.json`: Puts something away.
        - `list.json`: Lists what is indexed.
        - `clear.json`: Forgets everything.

        Arguments alone may carry `"_meta": {"correlation_id": "mine"}`; the job is `jobs/by/mine` then. To read the
        answer to your own call only, keep one handle: `exec 3<>invoke.json; echo … >&3; cat <&3`.
    "##]]
    .assert_eq(&contract.control_readme());
    expect![[r#"{"service_id":"count","version":"0.1.0","invoke":true,"operations":["search","put","list","clear"],"read_only":false,"network":true}"#]].assert_eq(&contract.caps().to_string());
    expect![[r#"{"control_path":"control/put.json","effect":"write","deadline_ms":60000,"idempotent":true,"about":"Puts something away."}"#]].assert_eq(&contract.ops()["put"].to_string());
    expect![[r#"{"op":"search","arguments":{"query":"it's"}}"#]].assert_eq(&contract.envelope_template().to_string());
}

#[test]
fn a_contract_of_plain_data_is_as_strict() {
    let takes = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {"city": {"$ref": "#/$defs/City"}, "days": {"type": "integer", "minimum": 1, "maximum": 7}},
        "required": ["city", "days"],
        "additionalProperties": false,
        "$defs": {"City": {"type": "string", "minLength": 1, "pattern": "^[A-Z]"}},
    });
    let forecast = Operation::read("forecast").about("Tells the weather.").takes(takes);
    let contract =
        Contract::plain("weather", "Weather.", vec![forecast.clone().example(json!({"city": "Oslo", "days": 1}))])
            .unwrap();
    assert!(jsonschema::meta::is_valid(contract.schema()));
    let said = |value: Value| contract.check("forecast", &value).unwrap_err().message;
    assert_eq!(
        said(json!({"city": "", "days": 9})),
        "forecast: city: must not be empty; city: must match ^[A-Z]; days: must be at most 7, not 9"
    );
    let broken = |operation: Operation| Contract::plain("weather", "", vec![operation]).unwrap_err().message;
    assert_eq!(
        broken(forecast),
        "the contract of weather is broken: the example of forecast is refused: forecast: city: must match ^[A-Z]"
    );
    assert_eq!(
        broken(Operation::read("a/b")),
        "the contract of weather is broken: `a/b` cannot be the name of an operation"
    );
    assert_eq!(
        broken(Operation::read("x").takes(json!(7))),
        "the contract of weather is broken: x.arguments is not a JSON Schema"
    );
    assert_eq!(
        broken(Operation::read("x").takes(json!({"$ref": "#/$defs/None"}))),
        "the contract of weather is broken: #/$defs/x.arguments.None does not resolve"
    );
    let library = Contract::plain("library", "Pages.", vec![]).unwrap();
    assert!(jsonschema::meta::is_valid(library.schema()));
    assert_eq!(library.caps()["invoke"], json!(false));
}

#[test]
fn a_thousand_faults_are_not_all_told() {
    let many: serde_json::Map<String, Value> = (0..50_000).map(|n| (format!("k{n}"), json!(1))).collect();
    let refused = contract().check("search", &Value::Object(many)).unwrap_err().message;
    assert!(refused.ends_with("; and 97 more"), "{refused}");
}

#[test]
fn a_schema_without_end_is_given_up() {
    let endless = json!({"$defs": {"A": {"anyOf": [{"$ref": "#/$defs/A"}, {"$ref": "#/$defs/A"}]}}});
    let faults = check::faults(&json!({"$ref": "#/$defs/A"}), &endless, &json!(1));
    assert!(!faults.is_empty());
}

proptest! {
    /// Our check and a whole validator agree about what may pass.
    #[test]
    fn the_check_agrees_with_a_validator(value in like_a_command()) {
        let contract = contract();
        let validator = jsonschema::draft202012::new(contract.schema()).unwrap();
        let passed = contract.envelope(value.clone()).is_ok();
        // Only ours knows what can be a name in jobs/by, and that a whole number is not written 1.0.
        if value.get("correlation_id").is_none() {
            prop_assert_eq!(passed, validator.is_valid(&value), "{}", value);
        }
    }
}

fn like_a_command() -> impl Strategy<Value = Value> {
    let scalar = prop_oneof![
        Just(json!(null)),
        Just(json!(7)),
        Just(json!(-1)),
        Just(json!(1.5)),
        Just(json!("glob")),
        Just(json!("sealed")),
        Just(json!(true))
    ];
    let keys = prop::sample::select(vec![
        "query",
        "path",
        "max_results",
        "filters",
        "name",
        "mode",
        "data",
        "labels",
        "kind",
        "pattern",
        "at_most",
        "x",
    ]);
    let any = scalar.prop_recursive(3, 24, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::Array),
            prop::collection::vec((keys.clone(), inner), 0..4).prop_map(|pairs| Value::Object(
                pairs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
            )),
        ]
    });
    let op = prop::sample::select(vec!["search", "put", "list", "clear", "fly"]);
    (op, prop::option::of(any)).prop_map(|(op, arguments)| match arguments {
        Some(arguments) => json!({"op": op, "arguments": arguments}),
        None => json!({"op": op}),
    })
}

#[test]
fn a_form_that_is_one_key_says_what_it_lacks() {
    let form = |name: &str, keys: &[&str]| {
        let properties: serde_json::Map<String, Value> =
            keys.iter().map(|key| ((*key).to_owned(), json!({"type": "string"}))).collect();
        let inner =
            json!({"type": "object", "properties": properties, "required": keys, "additionalProperties": false});
        json!({"type": "object", "properties": {name: inner}, "required": [name], "additionalProperties": false})
    };
    let schema = json!({"oneOf": [form("reveal", &["at"]), form("add-poi", &["at", "x", "y"])]});
    for (value, said) in [
        (json!({"add-poi": {"at": "@mill"}}), "add-poi: x is missing; add-poi: y is missing"),
        (json!({"annotate": {}}), "`annotate` is not known; possible values are reveal, add-poi"),
        (json!({}), "must have one of the keys reveal, add-poi"),
        (json!({"reveal": {"at": "@mill"}}), ""),
    ] {
        let faults = super::check::faults(&schema, &schema, &value);
        assert_eq!(super::check::sentence(&faults).unwrap_or_default(), said, "{value}");
    }
}
