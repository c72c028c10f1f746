//! Maps: nodes, edges, fog. An unvisited place is drawn as `?`, a neighbour of a visited one as `·`.
//!
//! A change makes a new version and has a reason; an inconsistent map is refused.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde::{Deserialize, Serialize};

use crate::fold::visible;
use crate::world::Fault;
use acheron_base::{Error, Result};

/// The largest coordinate of a node.
const FARTHEST: i64 = 60;
/// The most minutes and kilometres of a way.
const LONGEST_WAY: u64 = 10_000;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Map {
    pub version: u64,
    pub reason: String,
    /// `node`, `grid` or `hex`.
    pub scale: String,
    pub nodes: Vec<Node>,
    pub edges: Vec<Edge>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Node {
    /// `@1` and so on: the number on the map.
    pub id: String,
    /// The handle of the place.
    pub at: String,
    pub status: String,
    pub x: i64,
    pub y: i64,
    /// Risk 0–3.
    pub rp: i64,
    /// Importance 1–5.
    pub pi: i64,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Edge {
    pub from: String,
    pub to: String,
    pub kind: String,
    pub minutes: u64,
    /// The length of a long way. It takes as long as the pace and the weather let it, beside its minutes.
    #[serde(skip_serializing_if = "is_zero")]
    pub km: u64,
}

fn is_zero(km: &u64) -> bool {
    *km == 0
}

/// A way from place to place: the places, minutes, kilometres.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    pub steps: Vec<String>,
    pub minutes: u64,
    pub km: u64,
}

/// A change of a map: `reveal`, `add-poi`, `link` or `update-risk`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[schemars(rename = "Change")]
pub enum MapChange {
    /// A place becomes known.
    Reveal { at: String },
    /// A new place on the map.
    AddPoi { at: String, x: i64, y: i64 },
    /// A way between two places, named by their handles; it takes a minute or more.
    Link { from: String, to: String, kind: String, minutes: u64 },
    /// A place has another risk.
    UpdateRisk { at: String, rp: i64 },
}

pub fn read(path: &str, text: &str) -> Result<Map, Fault> {
    serde_json::from_str(text).map_err(|fault| Fault {
        path: path.to_owned(),
        line: fault.line(),
        message: format!("the data of a map is JSON, in maps/<name>.data.json: {fault}"),
    })
}

/// The longest reason of a change, in characters.
const LONGEST_REASON: usize = 200;

/// A reason as players read it on the map: one line without marks and labels of the output.
fn said_reason(reason: &str) -> Result<&str> {
    let reason = reason.trim();
    let marked = visible(reason) != reason || reason.contains(['\n', '[', ']', '|', '<', '>']);
    match reason.chars().count() {
        0 => Err(Error::invalid("a change of a map needs a reason")),
        _ if marked => Err(Error::invalid(
            "a reason is one line of plain text: players read it on the map, so it has no control characters and no [ ] | < >",
        )),
        1..=LONGEST_REASON => Ok(reason),
        _ => Err(Error::too_large(format!("a reason has at most {LONGEST_REASON} characters"))),
    }
}

impl Map {
    fn node(&self, at: &str) -> Option<&Node> {
        self.nodes.iter().find(|node| node.at == at)
    }

    /// The ways that lead out of a place: where to, how long, of what kind.
    pub fn ways(&self, from: &str) -> Vec<(&str, u64, &str)> {
        let ways = self.edges.iter().filter_map(|edge| match () {
            () if edge.from == from => Some((edge.to.as_str(), edge.minutes, edge.kind.as_str())),
            () if edge.to == from => Some((edge.from.as_str(), edge.minutes, edge.kind.as_str())),
            () => None,
        });
        ways.collect()
    }

    /// The way with the fewest steps through places that may be passed, and its minutes.
    pub fn path(&self, from: &str, to: &str, pass: impl Fn(&str) -> bool) -> Option<(Vec<String>, u64)> {
        let mut before: BTreeMap<String, (String, u64)> = BTreeMap::new();
        let mut queue = VecDeque::from([from.to_owned()]);
        while let Some(here) = queue.pop_front() {
            if here == to {
                let (mut steps, mut minutes, mut at) = (vec![to.to_owned()], 0, to);
                while let Some((previous, took)) = before.get(at).filter(|_| at != from) {
                    minutes += took;
                    at = previous;
                    steps.push(at.to_owned());
                }
                steps.reverse();
                return Some((steps, minutes));
            }
            for (next, minutes, _) in self.ways(&here) {
                if next != from && !before.contains_key(next) && (next == to || pass(next)) {
                    before.insert(next.to_owned(), (here.clone(), minutes));
                    queue.push_back(next.to_owned());
                }
            }
        }
        None
    }

    /// The same way with its kilometres.
    pub fn route(&self, from: &str, to: &str, pass: impl Fn(&str) -> bool) -> Option<Route> {
        let (steps, minutes) = self.path(from, to, pass)?;
        let joins = |edge: &&Edge, one: &str, other: &str| {
            edge.from == one && edge.to == other || edge.from == other && edge.to == one
        };
        let km = steps.windows(2).filter_map(|pair| self.edges.iter().find(|edge| joins(edge, &pair[0], &pair[1])));
        let km = km.map(|edge| edge.km).sum();
        Some(Route { steps, minutes, km })
    }

    /// The five checks: topology, scale, risk and importance, fog, names that the world knows.
    pub fn faults(&self, known: impl Fn(&str) -> bool) -> Vec<String> {
        let mut faults = Vec::new();
        let (mut ids, mut places) = (BTreeSet::new(), BTreeSet::new());
        for node in &self.nodes {
            if !ids.insert(&node.id) {
                faults.push(format!("topology: two nodes are {}", node.id));
            }
            if !places.insert(node.at.as_str()) {
                faults.push(format!("topology: {} stands on the map twice", node.at));
            }
            if !(0..=3).contains(&node.rp) || !(1..=5).contains(&node.pi) {
                faults.push(format!("indicator: {} needs a risk of 0-3 and an importance of 1-5", node.at));
            }
            if !matches!(node.status.as_str(), "known" | "rumored" | "hidden" | "destroyed") {
                faults.push(format!("fog: {} cannot be `{}`", node.at, node.status));
            }
            if !(0..=FARTHEST).contains(&node.x) || !(0..=FARTHEST).contains(&node.y) {
                faults.push(format!("scale: {} stands off the map: x and y are 0 to {FARTHEST}", node.at));
            }
            if !known(&node.at) {
                faults.push(format!("cross-map: {} is no place of this cartridge", node.at));
            }
        }
        let mut ways = BTreeSet::new();
        for edge in &self.edges {
            for (word, end) in [("begins at", &edge.from), ("leads to", &edge.to)] {
                if ids.contains(end) {
                    faults.push(format!(
                        "topology: a way {word} {end}, which is the number of a node: ways name places by their handles"
                    ));
                } else if !places.contains(end.as_str()) {
                    faults.push(format!("topology: a way {word} {end}, which is not on the map"));
                }
            }
            if edge.from == edge.to {
                faults.push(format!("topology: a way leads from {} to itself", edge.from));
            }
            let ends = if edge.from <= edge.to { (&edge.from, &edge.to) } else { (&edge.to, &edge.from) };
            if !ways.insert((ends, &edge.kind)) {
                faults.push(format!("topology: two ways of kind {} join {} and {}", edge.kind, edge.from, edge.to));
            }
            if edge.minutes == 0 && edge.km == 0 {
                faults.push(format!("scale: the way from {} to {} takes no time: give it minutes", edge.from, edge.to));
            }
            if edge.minutes > LONGEST_WAY || edge.km > LONGEST_WAY {
                let way = format!("from {} to {}", edge.from, edge.to);
                faults.push(format!("scale: {way} a way takes at most {LONGEST_WAY} minutes and as many kilometres"));
            }
            if !matches!(edge.kind.as_str(), "road" | "river" | "trail" | "secret") {
                faults.push(format!("topology: a way cannot be a `{}`", edge.kind));
            }
        }
        if !self.nodes.is_empty() && !matches!(self.scale.as_str(), "node" | "grid" | "hex") {
            faults.push(format!("scale: must be node|grid|hex, not `{}`", self.scale));
        }
        faults
    }

    /// The map with a change in it: a version more, and the reason.
    pub fn change(&self, change: &MapChange, reason: &str, known: impl Fn(&str) -> bool) -> Result<Map> {
        let reason = said_reason(reason)?;
        let mut map = self.clone();
        let missing = |at: &str| Error::not_found(format!("{at} is not on the map"));
        match change {
            MapChange::Reveal { at } => {
                map.nodes.iter_mut().find(|node| node.at == *at).ok_or_else(|| missing(at))?.status = "known".into();
            }
            MapChange::UpdateRisk { at, rp } => {
                map.nodes.iter_mut().find(|node| node.at == *at).ok_or_else(|| missing(at))?.rp = *rp;
            }
            MapChange::AddPoi { at, x, y } => {
                let id = format!("@{}", map.nodes.len() + 1);
                map.nodes.push(Node { id, at: at.clone(), status: "known".into(), x: *x, y: *y, rp: 0, pi: 1 });
            }
            MapChange::Link { from, to, kind, minutes } => {
                let (from, to, kind) = (from.clone(), to.clone(), kind.clone());
                map.edges.push(Edge { from, to, kind, minutes: *minutes, km: 0 });
            }
        }
        map.version += 1;
        map.reason = reason.to_owned();
        match map.faults(known).into_iter().next() {
            Some(fault) => Err(Error::invalid(fault)),
            None => Ok(map),
        }
    }

    /// The map as a player sees it. `secret` ways and what is neither walked nor beside it stay in the fog.
    pub fn render(&self, seen: &[String], here: &str, name: impl Fn(&str) -> String) -> String {
        let walked = |at: &str| at == here || seen.iter().any(|own| own == at);
        let beside = |at: &str| self.ways(at).iter().any(|(next, _, kind)| *kind != "secret" && walked(next));
        let across = self.nodes.iter().map(|node| node.x.clamp(0, FARTHEST)).max().unwrap_or(0);
        let down = self.nodes.iter().map(|node| node.y.clamp(0, FARTHEST)).max().unwrap_or(0);
        let (mut rows, mut legend) =
            (vec![vec!["  .".to_owned(); across as usize + 1]; down as usize + 1], String::new());
        for node in &self.nodes {
            let mark = match () {
                () if node.at == here => format!("[{}]", node.id.trim_start_matches('@')),
                () if walked(&node.at) => format!("{:>3}", node.id),
                () if beside(&node.at) && node.status != "hidden" => "  ·".to_owned(),
                () => "  ?".to_owned(),
            };
            if walked(&node.at) {
                let line = format!("{} {} · risk {} · importance {}\n", node.id, name(&node.at), node.rp, node.pi);
                legend.push_str(&line);
            }
            rows[node.y.clamp(0, FARTHEST) as usize][node.x.clamp(0, FARTHEST) as usize] = mark;
        }
        let grid: String = rows.iter().map(|row| format!("{}\n", row.join(" ").trim_end())).collect();
        let marks = "[n] here · n visited · `·` next to a place that was visited · ? unknown\n";
        format!("{grid}\n{legend}{marks}\nversion {} ({})\n", self.version, self.reason)
    }

    /// Whether a place is known well enough to be walked to.
    pub fn known(&self, at: &str) -> bool {
        self.node(at).is_none_or(|node| node.status != "destroyed")
    }
}

#[cfg(test)]
mod tests;
