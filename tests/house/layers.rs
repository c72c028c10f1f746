//! Who may use whom. Between crates the compiler keeps the layers; within `src/` this test does, by the order in which
//! `src/lib.rs` declares its modules.

use std::path::{Path, PathBuf};

use regex::Regex;

use crate::common::sources;

/// A library and the only places that may name it.
const NAMED_IN: [(&str, &[&str]); 10] = [
    ("async_nats::", &["crates/nats/"]),
    ("axum::", &["crates/http/", "src/doors/"]),
    ("fuser::", &["crates/fuse/"]),
    ("nkeys::", &["crates/nats/"]),
    ("reqwest::", &["crates/http/"]),
    ("hyper::", &["crates/http/"]),
    ("rusqlite::", &["crates/store/", "crates/base/src/sqlite.rs"]),
    ("clap::", &["src/cli/"]),
    ("redis::", &["src/services/symbols/"]),
    ("rmcp::", &["src/doors/mcp/"]),
];

/// The cores of services: their only crate of ours is `acheron-base`, and of that they use the error, the scanner of replies, the decoder of events, the count of tokens and the nearest name.
const CORES: [&str; 10] = [
    "crates/acp",
    "crates/approvals",
    "crates/audit",
    "crates/dm",
    "crates/fabric",
    "crates/gateway",
    "crates/mcp",
    "crates/prompts",
    "crates/proxy",
    "crates/recall",
];

/// The code of a file, without comments: those may name anything.
fn code(text: &str) -> String {
    text.lines().map(|line| line.split("//").next().unwrap_or_default()).collect::<Vec<_>>().join("\n")
}

fn all() -> Vec<(PathBuf, String)> {
    let files = sources();
    assert!(files.len() > 100, "the sources were not found");
    files.into_iter().map(|(file, text)| (file, code(&text))).collect()
}

fn lies_in(file: &Path, places: &[&str]) -> bool {
    places.iter().any(|place| file.to_string_lossy().starts_with(place))
}

#[test]
fn a_library_is_named_in_one_place() {
    let words = NAMED_IN.map(|(name, _)| Regex::new(&format!(r"\b{}", regex::escape(name))).unwrap());
    for (file, code) in all() {
        for ((name, places), word) in NAMED_IN.iter().zip(&words) {
            assert!(!word.is_match(&code) || lies_in(&file, places), "{} names {name}", file.display());
        }
    }
}

/// `rustix` is for files, descriptors and mounts, `nix` for users, signals and forks. The first process of a sandbox forks and
/// holds descriptors, so it needs both.
#[test]
fn a_file_uses_one_library_for_the_system() {
    let nix = Regex::new(r"\bnix::").unwrap();
    for (file, code) in all() {
        let code = code.split("#[cfg(test)]").next().unwrap_or_default();
        let both = code.contains("rustix::") && nix.is_match(code);
        assert!(!both || lies_in(&file, &["crates/sandbox/src/init.rs"]), "{} uses nix and rustix", file.display());
    }
}

#[test]
fn a_core_takes_data_and_returns_data() {
    let foreign =
        Regex::new(r"\bstd::(fs|net|env|time|thread|process|os)\b|\btokio\b|\bSystemTime\b|\bInstant\b").unwrap();
    let used = Regex::new(r"\bacheron_(\w+)(?:::(\{[^}]*\}|\w+))?").unwrap();
    let word = Regex::new(r"\w+").unwrap();
    for core in CORES {
        let own = format!("{core}/src");
        let tests = |file: &Path| file.iter().any(|part| part == "tests" || part == "tests.rs");
        let files: Vec<_> = all().into_iter().filter(|(file, _)| file.starts_with(&own) && !tests(file)).collect();
        assert!(files.len() > 3, "{core} was not found");
        for (file, code) in files {
            assert!(!foreign.is_match(&code), "{} uses {:?}", file.display(), foreign.find(&code));
            for found in used.captures_iter(&code) {
                let items = found.get(2).map_or("", |items| items.as_str());
                let error = word.find_iter(items).all(|it| {
                    [
                        "Code",
                        "Error",
                        "Result",
                        "quoted",
                        "delimited",
                        "reply_scan",
                        "tokens",
                        "ideograph",
                        "words",
                        "each_word",
                        "is_beginning",
                        "stem",
                        "telling",
                        "nearest",
                        "nearest_within",
                        "hint",
                        "utf8",
                        "may_be_part",
                        "sse",
                    ]
                    .contains(&it.as_str())
                });
                assert!(&found[1] == "base" && error, "{} uses {}", file.display(), &found[0]);
            }
        }
        let manifest =
            std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(core).join("Cargo.toml")).unwrap();
        let ours: Vec<&str> = manifest.lines().filter(|line| line.starts_with("acheron-")).collect();
        assert_eq!(ours, ["acheron-base.workspace = true"], "{core}");
    }
}

/// The modules of `src/` in their declared order: each may use those before it.
fn order() -> Vec<String> {
    let declared = Regex::new(r"(?m)^pub mod (\w+);").unwrap();
    let text = include_str!("../../src/lib.rs");
    declared.captures_iter(text).map(|found| found[1].to_owned()).collect()
}

#[test]
fn a_module_uses_only_what_stands_before_it() {
    let (order, used) = (order(), Regex::new(r"\bcrate::(\{[^}]*\}|\w+)").unwrap());
    let rank = |module: &str| order.iter().position(|it| it == module);
    let word = Regex::new(r"\b[a-z]\w*").unwrap();
    let mut wrong = Vec::new();
    for (file, code) in all() {
        let Ok(below) = file.strip_prefix("src") else { continue };
        let Some(own) = below.iter().next().and_then(|first| rank(&first.to_string_lossy())) else { continue };
        for group in used.captures_iter(&code) {
            for found in word.find_iter(&group[1]) {
                if rank(found.as_str()).is_some_and(|other| other > own) {
                    wrong.push(format!("{} uses crate::{}", file.display(), found.as_str()));
                }
            }
        }
    }
    assert_eq!(wrong, Vec::<String>::new(), "the order is {order:?}");
}

/// The folder `src/host/wiring` builds them, and is the only place that knows them all.
#[test]
fn no_file_outside_the_wiring_knows_many_services() {
    let services = Regex::new(r"(?m)^(?:pub )?mod (\w+);").unwrap();
    let services: Vec<String> =
        services.captures_iter(include_str!("../../src/services/mod.rs")).map(|found| found[1].to_owned()).collect();
    assert!(services.len() > 10, "{services:?}");
    let used = Regex::new(r"\bservices::(\w+)").unwrap();
    let elsewhere = |file: &Path| !lies_in(file, &["src/services/", "src/host/wiring/"]);
    for (file, code) in all().into_iter().filter(|(file, _)| elsewhere(file)) {
        let known = used.captures_iter(&code).map(|found| found[1].to_owned());
        let known: std::collections::BTreeSet<String> = known.filter(|name| services.contains(name)).collect();
        assert!(known.len() <= 2, "{} knows {known:?}", file.display());
    }
}

/// A service is handed what it uses: no file of theirs names the host, and none looks into the whole of its state.
#[test]
fn no_service_knows_the_host() {
    let host = Regex::new(r"\b(HostState|AgentEnv|SharedServices|crate::host)\b").unwrap();
    for (file, code) in all().into_iter().filter(|(file, _)| !lies_in(file, &["src/host/", "src/cli/"])) {
        let named = host.find(&code).filter(|_| file.starts_with("src"));
        assert!(named.is_none(), "{} names {named:?}", file.display());
    }
}

/// The one file that may ask a model: it reserves before and settles after. `runtimes.rs` opens models and hands them to it. (The
/// gateway passes on what programs ask servers; it reserves by the same ledger.)
const MAY_ASK: &str = "src/agent/ask.rs";

/// Outside `src/model` nothing names the trait of models, or a type that has it, so that nothing can ask one past the budget.
#[test]
fn nothing_reaches_a_model_but_the_function_that_pays() {
    let bare = Regex::new(
        r"\bdyn Model\b|\bimpl Model\b|\bmodel::(?:\{[^}]*\b)?Model\b|\bmodel::(?:openai|anthropic|guide|script|remote)\b|OpenedModel\(",
    )
    .unwrap();
    let mut opened = Vec::new();
    for (file, code) in all().into_iter().filter(|(file, _)| file.starts_with("src") && !file.starts_with("src/model"))
    {
        let name = file.display().to_string();
        let tests = name.contains("tests") || name.contains("/test_");
        let code = code.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        if tests || name == MAY_ASK {
            continue;
        }
        let found = bare.find(code).map(|found| found.as_str());
        assert_eq!(found, None, "{name} reaches a model without paying; use PaidModel");
        if code.contains("OpenedModel::new(") {
            opened.push(name);
        }
    }
    assert_eq!(opened, ["src/agent/runtimes.rs"], "models are opened in one place");
    let asked = all().into_iter().find(|(file, _)| file == Path::new(MAY_ASK)).map(|(_, code)| code).unwrap();
    assert_eq!(asked.matches(".0.answer(").count(), 1, "and asked in one");
}

/// The ways to take the time, an id or chance from the system.
const TAKEN: [&str; 9] = [
    "SystemTime::now",
    "Uuid::",
    "rand::rng()",
    "rand::random",
    "from_os_rng",
    "thread_rng",
    "OsRng",
    "Clock::real()",
    "Random::real()",
];

/// The places that may do so, each with the reason. The list only shrinks.
const MAY_TAKE: [(&str, &str); 6] = [
    ("crates/base/src/clock.rs", "the clock of the system"),
    ("crates/base/src/random.rs", "the randomness of the system"),
    (
        "crates/fuse/src/lib.rs",
        "the name of a mount differs from those of all other processes, however they are seeded",
    ),
    ("src/cli/since.rs", "a user says `yesterday`"),
    ("src/cli/mount.rs", "hands them to the host"),
    ("src/cli/tool.rs", "hands them to the tools"),
];

/// Everything else is handed a `Clock`, `Ids` or a `Random`, so that a run can be repeated.
#[test]
fn time_ids_and_randomness_come_from_outside() {
    for (file, code) in all() {
        let may = MAY_TAKE.iter().any(|(known, _)| Path::new(known) == file);
        let tests = file.file_stem().is_some_and(|name| name.to_string_lossy().ends_with("tests"))
            || file.iter().any(|part| part == "tests" || part == "sessions.rs");
        // Tests of a module stand at its end.
        let code = code.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
        for taken in TAKEN {
            assert!(may || tests || !code.contains(taken), "{} takes {taken}", file.display());
        }
    }
}

#[test]
fn the_list_of_modules_is_whole_and_short() {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut entries: Vec<String> =
        std::fs::read_dir(top).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    entries.sort();
    assert!(entries.len() <= 18, "{entries:?}");
    let mut known = order();
    known.extend(["lib.rs", "main.rs"].map(str::to_owned));
    known.sort();
    assert_eq!(entries, known);
}

#[test]
fn no_left_over_is_left() {
    for (file, code) in all() {
        for word in ["todo", "unimplemented", "dbg"].map(|name| format!("{name}!(")) {
            assert!(!code.contains(&word), "{} has {word}", file.display());
        }
    }
}

/// Unit tests stand in `foo/tests.rs` beside `foo.rs`, or in `foo.rs` itself when they have fewer than 40 lines.
#[test]
fn unit_tests_stand_beside_their_module() {
    for (file, code) in all() {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        assert!(!name.ends_with("_tests.rs"), "{} is to be a tests.rs beside its module", file.display());
        assert!(!code.contains("#[path"), "{} names the path of a module", file.display());
        let inline = code.split_once("\nmod tests {").map_or(0, |(_, tests)| tests.lines().count());
        assert!(inline < 40, "{} has {inline} lines of tests", file.display());
    }
}

#[test]
fn the_page_of_the_tests_names_every_folder() {
    let page = include_str!("../README.md");
    let mut named: Vec<&str> =
        page.lines().filter_map(|line| line.strip_prefix("- `")?.split_once("/`:")).map(|it| it.0).collect();
    named.sort_unstable();
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let entries = std::fs::read_dir(top).unwrap().map(|entry| entry.unwrap().path());
    let mut folders: Vec<String> =
        entries.filter(|path| path.is_dir()).map(|path| path.file_name().unwrap().to_string_lossy().into()).collect();
    folders.sort();
    assert_eq!(named, folders);
}

/// Names that several types of one crate may have: the commands and the outputs of each service, by convention (see
/// `CONTRIBUTING.md`). `Heard` in the terminal is left. The list only shrinks.
const SHARED_NAMES: [&str; 2] = ["Command", "Output"];

/// A type is found by its name: no two in one crate have the same, apart from types within tests.
#[test]
fn every_type_name_is_unique_in_its_crate() {
    let declared = Regex::new(r"(?m)^(?:pub(?:\([^)]*\))? )?(?:struct|enum|trait|type|union) (\w+)").unwrap();
    let is_test = |file: &Path| {
        file.iter().any(|part| ["tests", "tests.rs", "examples"].contains(&&*part.to_string_lossy()))
            || file.file_name().is_some_and(|name| name.to_string_lossy().starts_with("test_"))
    };
    let mut places: std::collections::BTreeMap<(String, String), Vec<String>> = Default::default();
    for (file, code) in all().into_iter().filter(|(file, _)| !is_test(file)) {
        let parts: Vec<_> = file.iter().map(|part| part.to_string_lossy()).collect();
        let own = if parts[0] == "src" { "acheron".to_owned() } else { parts[1].to_string() };
        let code = code.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        for found in declared.captures_iter(code) {
            places.entry((own.clone(), found[1].to_owned())).or_default().push(file.display().to_string());
        }
    }
    assert!(places.len() > 500, "only {} types were found", places.len());
    places.retain(|(_, name), files| files.len() > 1 && !SHARED_NAMES.contains(&name.as_str()));
    assert!(places.is_empty(), "names that stand for several types: {places:#?}");
}

/// Imports stand in three groups: the standard library, other crates, ours.
#[test]
fn imports_of_the_standard_library_stand_first() {
    for (file, code) in all() {
        let imports: Vec<&str> = code.lines().filter(|line| line.starts_with("use ")).collect();
        let late =
            imports.iter().skip_while(|line| line.starts_with("use std::")).find(|line| line.starts_with("use std::"));
        assert!(late.is_none(), "{} has {late:?} after other imports", file.display());
    }
}
