//! The ten actions: what each takes, in every spelling that is documented, and what is said to one that is wrong.
//!
//! Reading a command is pure and never fails the run: what cannot be read becomes the result that is logged for it.

use serde_json::{Value, json};

use acheron_base::nearest::nearest;

/// The deepest walk that may be asked for.
pub const DEEPEST: u64 = 5;
/// The most ids in one command.
const MOST_IDS: usize = 100;

/// An entry of a list of ids. One that is no id, or one too many, keeps no other from being looked for.
#[derive(Clone, PartialEq, Eq)]
pub struct WantedId {
    /// None if there is nothing to look for.
    pub id: Option<String>,
    /// The entry in the report of what is missing.
    pub shown: String,
}

impl std::fmt::Debug for WantedId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.shown)
    }
}

impl WantedId {
    fn of(entry: &Value) -> WantedId {
        let id = entry.as_str().map(|id| id.trim().to_owned()).filter(|id| !id.is_empty());
        let mut shown = id.clone().unwrap_or_else(|| entry.to_string());
        shown.truncate(shown.floor_char_boundary(128));
        WantedId { id, shown }
    }
}

/// Something that the host can do for a phase.
#[derive(Clone, Debug, PartialEq)]
pub enum PhaseAction {
    StoreSymbol { symbol: Value },
    UpdateSymbol { symbol: Value },
    DeleteSymbol { id: String },
    LoadSymbol { ids: Vec<WantedId> },
    LoadKit { kit: String },
    InvokeAgent { id: String },
    QuerySymbols { ids: Vec<WantedId>, query: Option<String>, k: usize, domain: Option<String>, tag: Option<String> },
    RecurseGraph { ids: Vec<WantedId>, query: Option<String>, depth: usize },
    EmitFeedback { kind: String, target: String, reason: String },
    DispatchTask { task: String, payload: Value },
}

/// One row of the table that phases are shown.
pub struct ActionSpec {
    pub name: &'static str,
    pub takes: &'static str,
    pub about: &'static str,
    /// Whether it changes symbols.
    pub mutates: bool,
    read: fn(&Value) -> Result<PhaseAction, Value>,
}

/// Every action there is.
pub const TABLE: [ActionSpec; 10] = [
    row("store_symbol", "symbol", "keeps a symbol that carries the validated mark", true, store_symbol),
    row("update_symbol", "symbol", "merges fields over a symbol of that id", true, update_symbol),
    row("delete_symbol", "symbol_id | id", "takes a symbol away; it can be undone", true, delete_symbol),
    row("load_symbol", "ids | id | symbol_id", "brings symbols into the context", false, load_symbol),
    row("load_kit", "kit_id | kit", "brings a kit's symbols and agents into the context", false, load_kit),
    row("invoke_agent", "agent_id | id", "puts an agent on the roster", false, invoke_agent),
    row("query_symbols", "query | ids, k, domain, tag", "finds symbols and brings them in", false, query_symbols),
    row("recurse_graph", "depth, query | ids", "walks links and brings in what it meets", false, recurse_graph),
    row("emit_feedback", "type, target, reason", "writes a remark into the target's ledger", false, emit_feedback),
    row(
        "dispatch_task",
        "task, payload",
        "starts service.operation as a job, or ends the session",
        false,
        dispatch_task,
    ),
];

const fn row(
    name: &'static str,
    takes: &'static str,
    about: &'static str,
    mutates: bool,
    read: fn(&Value) -> Result<PhaseAction, Value>,
) -> ActionSpec {
    ActionSpec { name, takes, about, mutates, read }
}

/// Reads a command: the action, with its row; or the result that stands for it.
pub fn read(body: &Value) -> Result<(&'static ActionSpec, PhaseAction), Value> {
    let name = match body.get("action") {
        None | Some(Value::Null) => return Err(json!({ "error": "missing_action" })),
        Some(Value::String(name)) => name,
        Some(_) => return Err(error("action must be a string")),
    };
    let Some(row) = TABLE.iter().find(|row| row.name == name) else {
        let mut result = json!({ "status": "unknown_action", "payload": body });
        if let Some(near) = nearest(name, TABLE.iter().map(|row| row.name)) {
            result["nearest"] = json!(near);
        }
        return Err(result);
    };
    (row.read)(body).map(|action| (row, action))
}

pub fn error(reason: impl Into<String>) -> Value {
    json!({ "status": "error", "reason": reason.into() })
}

fn store_symbol(body: &Value) -> Result<PhaseAction, Value> {
    // Checked first, even before whether there is a symbol at all: that is what phases are taught to look at.
    let symbol = body.get("symbol").cloned().unwrap_or(Value::Null);
    if !marked(&symbol) {
        return Err(json!({ "status": "rejected", "reason": "missing_validated_trait" }));
    }
    Ok(PhaseAction::StoreSymbol { symbol })
}

/// Whether what was written carries the validated mark, before it is known to be a symbol.
pub fn marked(symbol: &Value) -> bool {
    let word = |value: &Value| value.as_str().is_some_and(|word| word.trim().eq_ignore_ascii_case("validated"));
    let traits = symbol.get("traits");
    symbol.get("status").is_some_and(word)
        || traits.is_some_and(word)
        || traits.and_then(Value::as_array).is_some_and(|traits| traits.iter().any(word))
}

fn update_symbol(body: &Value) -> Result<PhaseAction, Value> {
    match body.get("symbol") {
        Some(symbol) if symbol.get("id").is_some_and(Value::is_string) => {
            Ok(PhaseAction::UpdateSymbol { symbol: symbol.clone() })
        }
        _ => Err(error("invalid_symbol")),
    }
}

fn delete_symbol(body: &Value) -> Result<PhaseAction, Value> {
    let id = text(body, &["symbol_id", "id"]).ok_or_else(|| error("missing_symbol_id"))?;
    Ok(PhaseAction::DeleteSymbol { id })
}

fn load_symbol(body: &Value) -> Result<PhaseAction, Value> {
    let ids = ids(body)?;
    if ids.is_empty() {
        return Err(error("missing_symbol_id"));
    }
    Ok(PhaseAction::LoadSymbol { ids })
}

fn load_kit(body: &Value) -> Result<PhaseAction, Value> {
    Ok(PhaseAction::LoadKit { kit: text(body, &["kit_id", "kit"]).ok_or_else(|| error("missing_kit_id"))? })
}

fn invoke_agent(body: &Value) -> Result<PhaseAction, Value> {
    Ok(PhaseAction::InvokeAgent { id: text(body, &["agent_id", "id"]).ok_or_else(|| error("missing_agent_id"))? })
}

fn query_symbols(body: &Value) -> Result<PhaseAction, Value> {
    let (ids, query) = (ids(body)?, text(body, &["query", "text"]));
    if ids.is_empty() && query.is_none() {
        return Err(error("missing_query"));
    }
    let k = body.get("k").and_then(Value::as_u64).unwrap_or(5).clamp(1, 50) as usize;
    let domain = text(body, &["domain", "symbol_domain"]);
    let tag = text(body, &["tag", "symbol_tag"]);
    Ok(PhaseAction::QuerySymbols { ids, query, k, domain, tag })
}

fn recurse_graph(body: &Value) -> Result<PhaseAction, Value> {
    let depth = match body.get("depth") {
        None | Some(Value::Null) => 1,
        Some(depth) => depth.as_u64().ok_or_else(|| error("depth must be a whole number"))?.min(DEEPEST),
    };
    Ok(PhaseAction::RecurseGraph { ids: ids(body)?, query: text(body, &["query"]), depth: depth as usize })
}

fn emit_feedback(body: &Value) -> Result<PhaseAction, Value> {
    let needed = |name: &str, spellings: &[&str]| text(body, spellings).ok_or_else(|| error(format!("missing_{name}")));
    Ok(PhaseAction::EmitFeedback {
        kind: needed("type", &["type"])?,
        target: needed("target", &["target", "symbol_id"])?,
        reason: needed("reason", &["reason"])?,
    })
}

fn dispatch_task(body: &Value) -> Result<PhaseAction, Value> {
    let task = text(body, &["task"]).ok_or_else(|| error("missing_task"))?;
    let payload = body.get("payload").cloned().unwrap_or_else(|| json!({}));
    Ok(PhaseAction::DispatchTask { task, payload })
}

/// The first of these keys that holds a text.
fn text(body: &Value, keys: &[&str]) -> Option<String> {
    let texts = keys.iter().filter_map(|key| body.get(*key)?.as_str());
    texts.map(str::trim).find(|text| !text.is_empty()).map(str::to_owned)
}

fn ids(body: &Value) -> Result<Vec<WantedId>, Value> {
    let mut ids: Vec<WantedId> = match body.get("ids").or_else(|| body.get("symbol_ids")) {
        Some(Value::Array(ids)) => ids.iter().map(WantedId::of).collect(),
        Some(id @ Value::String(_)) => vec![WantedId::of(id)],
        Some(Value::Null) | None => {
            text(body, &["symbol_id", "id"]).map(|id| WantedId::of(&Value::String(id))).into_iter().collect()
        }
        Some(_) => return Err(error("ids must be a list")),
    };
    // What is over the limit is not looked for, and is reported with the rest.
    ids.iter_mut().skip(MOST_IDS).for_each(|wanted| wanted.id = None);
    Ok(ids)
}

#[cfg(test)]
mod tests;
