//! The participants of a run: the roster of agents and the ledger of symbols, and how they are written in a prompt.

use super::context::LedgerLine;
use crate::services::symbols::kit::Agent;
use crate::services::symbols::symbol::Symbol;

/// The most symbols that one run holds.
const MOST_SYMBOLS: usize = 500;
/// The most agents on the roster.
const MOST_AGENTS: usize = 32;

/// Why a symbol is here; decides how much it matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SymbolReason {
    /// Every session begins with it.
    Default,
    /// It is near to the query; the score is out of 1000.
    Near(u32),
    /// A command of this run brought it.
    Loaded,
}

impl SymbolReason {
    fn relevance(self) -> u32 {
        match self {
            SymbolReason::Default => 2000,
            SymbolReason::Loaded => 1500,
            SymbolReason::Near(score) => 1000 + score.min(400),
        }
    }
}

/// The agents and symbols of a run, in the order in which they came.
#[derive(Clone, Debug, Default)]
pub struct Participants {
    agents: Vec<Agent>,
    symbols: Vec<(Symbol, SymbolReason)>,
}

impl Participants {
    /// Adds a symbol; whether it is new. One that is there already and is asked for again matters as a loaded one does.
    pub fn bring(&mut self, symbol: Symbol, why: SymbolReason) -> bool {
        if let Some((known, reason)) = self.symbols.iter_mut().find(|(known, _)| known.id == symbol.id) {
            *known = symbol;
            if why == SymbolReason::Loaded && *reason != SymbolReason::Default {
                *reason = why;
            }
            return false;
        }
        let room = self.symbols.len() < MOST_SYMBOLS;
        if room {
            self.symbols.push((symbol, why));
        }
        room
    }

    /// Takes a changed symbol over, if it is here.
    pub fn refresh(&mut self, symbol: &Symbol) {
        if let Some((known, _)) = self.symbols.iter_mut().find(|(known, _)| known.id == symbol.id) {
            known.clone_from(symbol);
        }
    }

    pub fn forget(&mut self, id: &str) {
        self.symbols.retain(|(symbol, _)| symbol.id != id);
    }

    /// Puts an agent on the roster, once.
    pub fn call(&mut self, agent: Agent) -> bool {
        let new = self.agents.len() < MOST_AGENTS && !self.agents.iter().any(|known| known.id == agent.id);
        if new {
            self.agents.push(agent);
        }
        new
    }

    pub fn symbols(&self) -> Vec<Symbol> {
        self.symbols.iter().map(|(symbol, _)| symbol.clone()).collect()
    }

    /// The symbols' ids: defaults, then neighbours, then what was loaded.
    pub fn ids(&self) -> Vec<String> {
        let of = |fits: fn(&SymbolReason) -> bool| {
            self.symbols.iter().filter(move |(_, why)| fits(why)).map(|(symbol, _)| symbol.id.clone())
        };
        let (first, second) = (of(|why| *why == SymbolReason::Default), of(|why| matches!(why, SymbolReason::Near(_))));
        first.chain(second).chain(of(|why| *why == SymbolReason::Loaded)).collect()
    }

    pub fn agent_lines(&self) -> Vec<LedgerLine> {
        let line =
            |agent: &Agent| LedgerLine { id: agent.id.clone(), text: agent_text(agent), relevance: 0, loaded: false };
        self.agents.iter().map(line).collect()
    }

    pub fn symbol_lines(&self) -> Vec<LedgerLine> {
        let line = |(symbol, why): &(Symbol, SymbolReason)| LedgerLine {
            id: symbol.id.clone(),
            text: symbol_text(symbol),
            relevance: why.relevance(),
            loaded: *why == SymbolReason::Loaded,
        };
        self.symbols.iter().map(line).collect()
    }
}

fn agent_text(agent: &Agent) -> String {
    let act = agent.activation_conditions.join("; ");
    parts(&[&agent.id, &agent.name, &agent.role, &agent.function, &agent.triad_raw, &act])
}

fn symbol_text(symbol: &Symbol) -> String {
    let (triad, invocations) = (symbol.triad.join(" "), symbol.invocations.join("; "));
    let links = match symbol.links() {
        links if links.is_empty() => String::new(),
        links => format!("→ {}", links.join(" ")),
    };
    parts(&[&symbol.id, &symbol.name, &triad, &symbol.recipe, &symbol.description, &invocations, &links])
}

/// The parts that say something, on one line: a line break in a symbol must not look like a new entry.
fn parts(parts: &[&str]) -> String {
    let said = parts.iter().map(|part| part.split_whitespace().collect::<Vec<_>>().join(" "));
    said.filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" | ")
}

#[cfg(test)]
mod tests;
