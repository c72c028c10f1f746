//! The tools of the four roles: their arguments, and the roles that may call each.

pub mod control;
mod roll;
pub mod run;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use acheron_base::{Error, Result};

/// One call, as `{"name": ..., "arguments": {...}}`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Call {
    pub name: String,
    #[serde(default)]
    pub arguments: Value,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    Author,
    Builder,
    Dm,
    SaveRead,
}

impl Role {
    pub fn named(name: &str) -> Result<Role> {
        match name {
            "AUTHOR" => Ok(Role::Author),
            "BUILDER" => Ok(Role::Builder),
            "DM" => Ok(Role::Dm),
            "SAVE_READ" => Ok(Role::SaveRead),
            "" => Err(Error::forbidden("no role given: tools are called as AUTHOR, BUILDER, DM or SAVE_READ")),
            other => Err(Error::forbidden(format!("unknown role: {}", crate::md::clip(other, 40)))),
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Role::Author => "AUTHOR",
            Role::Builder => "BUILDER",
            Role::Dm => "DM",
            Role::SaveRead => "SAVE_READ",
        }
    }
}

/// The type of an argument.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ArgumentKind {
    Text,
    Words(&'static [&'static str]),
    Number(i64, i64),
    Texts,
    Flag,
    Object,
}

pub struct Tool {
    pub name: &'static str,
    pub about: &'static str,
    pub roles: &'static [Role],
    /// Name, kind, whether it must be there.
    pub arguments: &'static [(&'static str, ArgumentKind, bool)],
}

use ArgumentKind::{Flag, Number, Object, Text, Texts, Words};
use Role::{Author, Builder, Dm, SaveRead};

const MODES: ArgumentKind = Words(&["append", "prepend", "replace"]);
const PANEL: &[(&str, ArgumentKind, bool)] = &[
    ("campaign_path", Text, true),
    ("mode", Words(&["patch", "replace"]), true),
    ("content", Text, true),
    ("pattern", Text, false),
];
const CAMPAIGN: &[(&str, ArgumentKind, bool)] = &[("campaign_path", Text, true)];

pub const TOOLS: [Tool; 24] = [
    Tool {
        name: "read_file",
        about: "The first lines of a file.",
        roles: &[Author, Builder, SaveRead],
        arguments: &[("path", Text, true), ("max_lines", Number(1, 400), false)],
    },
    Tool {
        name: "read_index",
        about: "An index, or only its head.",
        roles: &[Author],
        arguments: &[("path", Text, true), ("head_only", Flag, true)],
    },
    Tool {
        name: "write_patch",
        about: "Appends, prepends, or replaces the one place that a pattern finds.",
        roles: &[Author, Builder, SaveRead],
        arguments: &[("path", Text, true), ("mode", MODES, true), ("content", Text, true), ("pattern", Text, false)],
    },
    Tool {
        name: "route_lookup",
        about: "The files that a header leads to.",
        roles: &[Dm],
        arguments: &[("routes_path", Text, true), ("command_head", Text, true)],
    },
    Tool {
        name: "fetch_facts",
        about: "Bullet lines of files.",
        roles: &[Dm],
        arguments: &[("paths", Texts, true), ("limit", Number(1, 20), true)],
    },
    Tool {
        name: "append_session",
        about: "Appends to the current session.",
        roles: &[Dm],
        arguments: &[("session_path", Text, true), ("content", Text, true)],
    },
    Tool { name: "update_hot_pack", about: "Merges a patch into HOT_PACK.json.", roles: &[Dm], arguments: PANEL },
    Tool {
        name: "update_mainline_panel",
        about: "Merges a patch into MAINLINE_PANEL.json.",
        roles: &[Dm],
        arguments: PANEL,
    },
    Tool {
        name: "update_state_panel",
        about: "Merges a patch into STATE_PANEL.json and records it as a Decision.",
        roles: &[Dm],
        arguments: PANEL,
    },
    Tool {
        name: "update_object_index",
        about: "Merges a patch into OBJECT_INDEX.json.",
        roles: &[Dm],
        arguments: PANEL,
    },
    Tool {
        name: "copy_template",
        about: "Makes a campaign from the template.",
        roles: &[Builder],
        arguments: &[("src", Text, true), ("dst", Text, true)],
    },
    Tool {
        name: "bind_campaign",
        about: "Binds a campaign to a cartridge and a version.",
        roles: &[Builder],
        arguments: &[("campaign_path", Text, true), ("cartridge_id", Text, true), ("version_lock", Text, true)],
    },
    Tool {
        name: "init_campaign",
        about: "Initialises a campaign with confirmed answers.",
        roles: &[Builder],
        arguments: &[("campaign_path", Text, true), ("answers", Object, true)],
    },
    Tool { name: "set_active", about: "Makes a campaign the active one.", roles: &[Builder], arguments: CAMPAIGN },
    Tool {
        name: "snapshot_update",
        about: "Makes the snapshot again from the session.",
        roles: &[SaveRead],
        arguments: CAMPAIGN,
    },
    Tool {
        name: "compress_history",
        about: "Makes the digest again from the session.",
        roles: &[SaveRead],
        arguments: CAMPAIGN,
    },
    Tool {
        name: "load_snapshot",
        about: "The newest snapshot and the hot pack.",
        roles: &[SaveRead, Dm],
        arguments: CAMPAIGN,
    },
    Tool {
        name: "validate_no_new_facts",
        about: "Whether a load says only what is recorded.",
        roles: &[SaveRead],
        arguments: &[("snapshot_path", Text, true), ("hot_pack_path", Text, true), ("load_output", Text, true)],
    },
    Tool {
        name: "register_handle",
        about: "Adds a handle and its aliases to an index.",
        roles: &[Author],
        arguments: &[
            ("cartridge_path", Text, true),
            ("index_path", Text, true),
            ("handle", Text, true),
            ("aliases", Texts, true),
        ],
    },
    Tool {
        name: "validate_index_spec",
        about: "What an index lacks.",
        roles: &[Author],
        arguments: &[("path", Text, true)],
    },
    Tool {
        name: "generate_questionnaire",
        about: "The questions to settle before writing.",
        roles: &[Author, Builder],
        arguments: &[
            ("role", Words(&["AUTHOR", "BUILDER"]), true),
            ("scope", Text, true),
            ("language", Words(&["zh-CN", "en"]), true),
            ("count", Number(3, 10), false),
        ],
    },
    Tool {
        name: "roll_check",
        about: "One check, thrown with the campaign's dice. A check with a name (`what`) is thrown once in a turn, and asked for again it is answered with the same throw.",
        roles: &[Dm],
        arguments: &[
            ("dc", Number(1, 40), true),
            ("modifier", Number(-20, 20), false),
            ("advantage", Words(&["normal", "advantage", "disadvantage"]), true),
            ("pc_path", Text, false),
            ("stat", Text, false),
            ("what", Text, false),
            ("campaign_path", Text, false),
        ],
    },
    Tool { name: "read_hot_pack", about: "HOT_PACK.json.", roles: &[Dm], arguments: CAMPAIGN },
    Tool { name: "read_state_panel", about: "STATE_PANEL.json.", roles: &[Dm], arguments: CAMPAIGN },
];

/// Checks that the tool exists, that the role may call it, and that the arguments fit.
pub fn admit(role: Role, call: &Call) -> Result<&'static Tool> {
    let unknown = || Error::unknown_operation(format!("unknown tool: {}", crate::md::clip(&call.name, 60)));
    let tool = TOOLS.iter().find(|tool| tool.name == call.name).ok_or_else(unknown)?;
    if !tool.roles.contains(&role) {
        return Err(Error::forbidden(format!("tool not allowed for role {}: {}", role.name(), tool.name)));
    }
    let empty = serde_json::Map::new();
    let given = match &call.arguments {
        Value::Object(given) => given,
        Value::Null => &empty,
        _ => return Err(Error::invalid(format!("{}: arguments must be an object", tool.name))),
    };
    if let Some(stranger) = given.keys().find(|key| !tool.arguments.iter().any(|(name, ..)| name == key)) {
        return Err(Error::invalid(format!("{}: unknown argument `{}`", tool.name, crate::md::clip(stranger, 40))));
    }
    for (name, kind, required) in tool.arguments {
        match given.get(*name) {
            None if *required => return Err(Error::invalid(format!("{}: {name} is missing", tool.name))),
            Some(value) if !kind.takes(value) => {
                return Err(Error::invalid(format!("{}: {name} must be {}", tool.name, kind.words())));
            }
            _ => (),
        }
    }
    Ok(tool)
}

impl ArgumentKind {
    fn takes(self, value: &Value) -> bool {
        match self {
            Text => value.is_string(),
            Words(words) => value.as_str().is_some_and(|word| words.contains(&word)),
            Number(low, high) => value.as_i64().is_some_and(|number| (low..=high).contains(&number)),
            Texts => value.as_array().is_some_and(|list| list.len() <= 100 && list.iter().all(Value::is_string)),
            Flag => value.is_boolean(),
            Object => value.is_object(),
        }
    }

    fn words(self) -> String {
        match self {
            Text => "a string".into(),
            Words(words) => words.join("|"),
            Number(low, high) => format!("a number from {low} to {high}"),
            Texts => "a list of strings".into(),
            Flag => "true or false".into(),
            Object => "an object".into(),
        }
    }

    fn schema(self) -> Value {
        match self {
            Text => json!({"type": "string"}),
            Words(words) => json!({"type": "string", "enum": words}),
            Number(low, high) => json!({"type": "integer", "minimum": low, "maximum": high}),
            Texts => json!({"type": "array", "items": {"type": "string"}}),
            Flag => json!({"type": "boolean"}),
            Object => json!({"type": "object"}),
        }
    }
}

/// `tools.json`: made from the table, so that it cannot differ from what is enforced.
pub fn document() -> Value {
    let tools = TOOLS.iter().map(|tool| {
        let properties: serde_json::Map<String, Value> = tool.arguments.iter().map(|(name, kind, _)| ((*name).to_owned(), kind.schema())).collect();
        let required: Vec<&str> = tool.arguments.iter().filter(|(_, _, required)| *required).map(|(name, ..)| *name).collect();
        let roles: Vec<&str> = tool.roles.iter().map(|role| role.name()).collect();
        json!({"name": tool.name, "description": tool.about, "strict": true, "roles": roles,
               "parameters": {"type": "object", "properties": properties, "required": required, "additionalProperties": false}})
    });
    json!({"tooling_version": "0.1.0", "tools": tools.collect::<Vec<_>>()})
}

/// Whether the call changes a campaign that is being played.
pub fn changes_campaign(role: Role, call: &Call) -> bool {
    let own = call.name.as_str();
    let patch = own == "write_patch" && matches!(role, Role::Builder | Role::SaveRead);
    patch
        || own.starts_with("update_")
        || matches!(own, "append_session" | "roll_check" | "snapshot_update" | "compress_history")
}

/// The campaign that a call names, in `campaign_path` or in the path of a file.
pub fn campaign_named(call: &Call) -> Option<&str> {
    let text = |key: &str| call.arguments[key].as_str().filter(|text| !text.is_empty());
    let of_path = |key: &str| text(key)?.strip_prefix("campaigns/")?.split('/').next();
    let own = text("campaign_path").map(|path| path.trim_start_matches("campaigns/"));
    own.or_else(|| ["path", "session_path", "snapshot_path", "hot_pack_path", "pc_path"].into_iter().find_map(of_path))
}

/// The one campaign that these calls and the operation name; `None` where they name none.
pub fn one_campaign(calls: &[Call], named: Option<String>) -> Result<Option<String>> {
    let named = named.filter(|id| !id.is_empty()).map(|id| id.trim_start_matches("campaigns/").to_owned());
    let mut all: Vec<String> = named.into_iter().collect();
    all.extend(calls.iter().filter_map(campaign_named).map(str::to_owned));
    all.dedup();
    match all.as_slice() {
        [] => Ok(None),
        [one] => Ok(Some(one.clone())),
        [one, other, ..] => Err(Error::invalid(format!("one batch is about one campaign, not {one} and {other}"))),
    }
}

/// The calls that a control instruction stands for.
pub fn calls(control: &crate::input::Control, cartridge: &str, version_lock: &str) -> Vec<Call> {
    use super::input::Control;
    let call = |name: &str, arguments: Value| Call { name: name.to_owned(), arguments };
    match control {
        Control::Initialize => {
            vec![call("init_campaign", json!({"campaign_path": "campaigns/<active>", "answers": {}}))]
        }
        Control::NewCampaign(id) => {
            let path = format!("campaigns/{id}");
            vec![
                call("copy_template", json!({"src": "campaigns/_template", "dst": path})),
                call(
                    "bind_campaign",
                    json!({"campaign_path": path, "cartridge_id": cartridge, "version_lock": version_lock}),
                ),
                call("set_active", json!({"campaign_path": path})),
            ]
        }
        Control::SwitchCampaign(id) => vec![call("set_active", json!({"campaign_path": format!("campaigns/{id}")}))],
        Control::Continue => vec![call("load_snapshot", json!({"campaign_path": "campaigns/<active>"}))],
        // No tool reopens a campaign: it is the player's to do.
        Control::PlayOn => Vec::new(),
    }
}

#[cfg(test)]
mod tests;
