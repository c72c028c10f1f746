use std::collections::{HashMap, HashSet};

use super::*;
use crate::services::symbols::kit::{Agent, Kit};

#[test]
fn a_catalogue_without_symbols_is_refused() {
    assert_eq!(symbols(&json!({})).unwrap_err().message, "the catalogue is missing 'symbols' key");
    assert!(symbols(&json!({"symbols": 7})).is_err());
}

#[test]
fn kits_that_are_no_list_are_refused() {
    assert!(kits(&json!({"kit":"A"})).is_err());
    assert_eq!(kits(&json!([{"kit":"A"}])).unwrap().len(), 1);
}

#[test]
fn a_book_without_personas_has_no_agents() {
    assert_eq!(agents(&json!({"system":"x"})).unwrap(), Vec::<Value>::new());
}

#[test]
fn malformed_defaults_are_refused_in_the_known_words() {
    for text in ["{\"default_agent_ids\":\"A\"}", "[]x", "{\"default_symbol_ids\":[1]}"] {
        let said = defaults(text).unwrap_err().message;
        assert!(said.starts_with("default context configuration is malformed: "), "{said}");
    }
    assert_eq!(defaults("{\"default_agent_ids\":[\"A\"]}").unwrap().default_agent_ids, ["A"]);
}

#[test]
fn what_is_exported_can_be_imported_again() {
    let written = [json!({"id":"A","triad":["x","y","z"],"mood":1}), json!({"id":"B","triad":"⟐⇌"})];
    let first: Vec<Value> = written.iter().map(|body| Symbol::read(body).unwrap().json()).collect();
    let file = exported(&first, &[], &[]);
    assert_eq!(file["symbol_catalog.json"]["symbols"][0]["triad"], "x y z");
    let again = symbols(&file["symbol_catalog.json"]).unwrap();
    let second: Vec<Value> = again.iter().map(|body| Symbol::read(body).unwrap().json()).collect();
    assert_eq!(first, second);
}

#[test]
fn what_we_ship_is_whole() {
    let all = documents(&shipped()).unwrap();
    let of = |kind| all.iter().filter(move |(other, _)| *other == kind).map(|(_, body)| body);
    let symbols: HashMap<String, Symbol> = of(DocumentKind::Symbol)
        .map(|body| Symbol::read(body).unwrap())
        .map(|symbol| (symbol.id.clone(), symbol))
        .collect();
    let agents: Vec<Agent> = of(DocumentKind::Agent).map(|body| Agent::read(body).unwrap()).collect();
    let kits: Vec<Kit> = of(DocumentKind::Kit).map(|body| Kit::read(body).unwrap()).collect();
    assert!(symbols.len() >= 30 && kits.len() >= 3 && agents.len() >= 4);
    assert_eq!(symbols.len(), of(DocumentKind::Symbol).count(), "no id twice");
    for symbol in symbols.values() {
        assert!(symbol.validated(), "{}", symbol.id);
        assert!(symbol.links().iter().all(|link| symbols.contains_key(*link)), "{}", symbol.id);
        assert!(!symbol.links().is_empty(), "{} leads nowhere", symbol.id);
    }
    let agent_ids: HashSet<&str> = agents.iter().map(|agent| agent.id.as_str()).collect();
    assert!(agents.iter().flat_map(|agent| &agent.linked_personas).all(|id| agent_ids.contains(id.as_str())));
    for kit in &kits {
        for name in kit.triad.iter().chain(&kit.exec) {
            let agent = agents.iter().any(|agent| super::super::kit::means(name, &agent.id));
            assert!(agent || symbols.contains_key(name), "{} of kit {}", name, kit.kit);
        }
    }
    let defaults = defaults(&shipped().defaults.unwrap()).unwrap();
    assert!(defaults.default_symbol_ids.iter().all(|id| symbols.contains_key(id)));
    assert!(defaults.default_agent_ids.iter().all(|id| agent_ids.contains(id.as_str())));
}

#[test]
fn a_library_replaces_the_files_that_it_has() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("catalogue")).unwrap();
    std::fs::write(folder.path().join("catalogue/kits.json"), "[]").unwrap();
    let (own, shipped) = (of_library(Some(folder.path())).unwrap(), shipped());
    assert_eq!(own.kits.as_deref(), Some("[]"));
    assert_eq!((own.symbols, own.agents, own.defaults), (shipped.symbols, shipped.agents, shipped.defaults));
    assert_eq!(of_library(None).unwrap().kits, shipped.kits);
}
