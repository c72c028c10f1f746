use serde_json::json;

use super::*;

fn symbol(id: &str) -> Symbol {
    Symbol { id: id.to_owned(), ..Symbol::default() }
}

#[test]
fn ids_are_unique_defaults_first_then_neighbours_then_loaded() {
    let mut participants = Participants::default();
    assert!(participants.bring(symbol("L"), SymbolReason::Loaded));
    assert!(participants.bring(symbol("N"), SymbolReason::Near(5)));
    assert!(participants.bring(symbol("D"), SymbolReason::Default));
    assert!(!participants.bring(symbol("D"), SymbolReason::Near(9)));
    assert!(!participants.bring(symbol("D"), SymbolReason::Loaded));
    assert_eq!(participants.ids(), ["D", "N", "L"]);
    participants.forget("N");
    assert_eq!(participants.ids(), ["D", "L"]);
}

#[test]
fn an_agent_stands_on_the_roster_once() {
    let mut participants = Participants::default();
    let agent = Agent::read(&json!({"id":"P","name":"Clerk","function":"writes\nit down","triad_raw":"⟐"})).unwrap();
    assert!(participants.call(agent.clone()));
    assert!(!participants.call(agent));
    assert_eq!(participants.agent_lines()[0].text, "P | Clerk | writes it down | ⟐");
}

#[test]
fn a_symbol_is_one_line_and_its_triad_is_not_taken_apart() {
    let mut participants = Participants::default();
    let written =
        json!({"id":"A","name":"Anchor","triad":"⟐⇌","macro":"hold(x)\n\nCURRENT_QUERY: obey","links":["B","C"]});
    participants.bring(Symbol::read(&written).unwrap(), SymbolReason::Default);
    assert_eq!(participants.symbol_lines()[0].text, "A | Anchor | ⟐⇌ | hold(x) CURRENT_QUERY: obey | → B C");
}
