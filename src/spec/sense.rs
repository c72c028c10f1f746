//! Checks that a schema cannot express: names that must exist, settings that depend on one another.

use super::operation_schema;
use super::{
    AgentSpec, LAYOUT, McpSpec, ModelApi, ModelKind, ModelProtocol, ModelSpec, OperationSpec, ServiceScope,
    ServiceSpec, Spec, SymbolsBackend,
};
use crate::contract::check::{ValueFault, join};
use crate::contract::{self, Contract, Effect};
use crate::events::Selector;
use crate::policy::pattern::Pattern;
use crate::policy::{Action, example_faults};
use acheron_base::nearest::hint;
use acheron_base::quoted;

/// The built-in services, which may have settings here but no program.
pub const BUILT_IN: [&str; 14] = [
    "agents",
    "dm",
    "mail",
    "memory",
    "mounts",
    "phases",
    "prompts",
    "queues",
    "recall",
    "search_code",
    "sub_brains",
    "symbols",
    "terminal",
    "web_search",
];
/// Other names in an agent's directory or in `global`.
const RESERVED: [&str; 8] = ["chat", "events", "jobs", "library", "model", "services", "status.json", "thoughts"];

pub(super) fn faults(spec: &Spec) -> Vec<ValueFault> {
    let mut faults = Faults::default();
    if spec.layout != LAYOUT {
        faults.add("layout", format!("{} is not known; this program knows {LAYOUT}", quoted(&spec.layout)));
    }
    if spec.agents.is_empty() {
        faults.add("agents", "must name at least one agent");
    }
    if let Some(name) = spec.default_agent.as_deref().filter(|name| !spec.agents.contains_key(*name)) {
        let hint = hint(name, spec.agents.keys().map(String::as_str), "agents");
        faults.add("default_agent", format!("there is no agent {}{hint}", quoted(name)));
    }
    for (path, folder) in [
        ("state", &spec.state),
        ("library", &spec.library),
        ("prompts", &spec.prompts),
        ("recall.store", &spec.recall.store),
        ("dm.root", &spec.dm.root),
    ] {
        if let Some(folder) = folder {
            faults.folder(path, folder);
        }
    }
    for (at, folder) in spec.skills.iter().enumerate() {
        faults.folder(&format!("skills[{at}]"), folder);
    }
    faults.model("model", &spec.model);
    if let Some(narrator) = &spec.dm.narrator {
        faults.model("dm.narrator", &narrator.over(&spec.model));
    }
    for (id, agent) in &spec.agents {
        faults.agent(&join("agents", id), id, agent, spec);
    }
    for (id, project) in &spec.projects {
        let path = join("projects", id);
        faults.id(&path, id);
        for (place, bind) in &project.binds {
            let path = join(&join(&path, "binds"), place);
            if let Err(fault) = bind_place(place) {
                faults.add(&path, fault);
            }
            faults.folder(&join(&path, "path"), &bind.path);
        }
        for (at, named) in project.protected.iter().enumerate() {
            let plain = |name: &str| !name.is_empty() && name != "." && name != ".." && !name.contains(['*', '\0']);
            if !named.split('/').all(plain) {
                let said = format!("{} is not a plain path in the project, such as .git/hooks", quoted(named));
                faults.add(&format!("{path}.protected[{at}]"), said);
            }
        }
    }
    if let Some(level) = spec.sandbox.require.filter(|_| spec.sandbox.allow_unconfined) {
        let said = format!("`{}` contradicts allow_unconfined: leave one of them out", level.name());
        faults.add("sandbox.require", said);
    }
    for (at, named) in spec.sandbox.system.iter().enumerate() {
        if let Err(error) = acheron_sandbox::check_system(std::path::Path::new(named)) {
            faults.add(&format!("sandbox.system[{at}]"), error.message);
        }
    }
    for (path, said) in spec.sandbox.network.faults() {
        faults.add(&path, said);
    }
    for (name, service) in &spec.services {
        faults.service(&join("services", name), name, service);
    }
    for (path, said) in spec.fabric.iter().flat_map(|fabric| fabric.faults(spec)) {
        faults.add(&path, said);
    }
    for (at, notify) in spec.approvals.notify.iter().enumerate() {
        let path = format!("approvals.notify[{at}]");
        match (&notify.webhook, notify.command.is_empty()) {
            (Some(url), true) if !begins(url, &["http://", "https://"]) => {
                faults.add(
                    &join(&path, "webhook"),
                    format!("{} is not a URL; it must begin with http:// or https://", quoted(url)),
                );
            }
            (Some(_), true) | (None, false) => (),
            _ => faults.add(&path, "give `webhook` or `command`, and not both"),
        }
    }
    if let Some(url) = spec.approvals.url.as_deref().filter(|url| !begins(url, &["http://", "https://"])) {
        faults.add("approvals.url", format!("{} is not a URL; it must begin with http:// or https://", quoted(url)));
    }
    if let Some(url) = spec.telemetry.otlp.as_deref().filter(|url| !begins(url, &["http://", "https://"])) {
        let said = format!("{} is not a URL; it must begin with http:// or https://", quoted(url));
        faults.add("telemetry.otlp", said);
    }
    match (spec.symbols.backend, spec.symbols.url.as_deref()) {
        (SymbolsBackend::Redis, None) => {
            faults.add("symbols.url", "the redis backend needs a URL: redis://127.0.0.1:6379/0");
        }
        (SymbolsBackend::Redis, Some(url)) if !begins(url, &["redis://", "rediss://", "unix://", "redis+unix://"]) => {
            faults.add(
                "symbols.url",
                format!("{} is not a Redis URL; it begins with redis:// or rediss:// and names a server", quoted(url)),
            );
        }
        (SymbolsBackend::Sqlite, Some(_)) => faults.add("symbols.url", "applies only to the redis backend"),
        _ => {}
    }
    faults.0
}

/// The faults of one agent, for agents that are added while the host runs.
pub fn agent_faults(spec: &Spec, id: &str, agent: &AgentSpec) -> Vec<ValueFault> {
    let mut faults = Faults::default();
    faults.agent(id, id, agent, spec);
    faults.0
}

/// The contract of a program, from its entry in the mountspec.
pub fn contract_of(name: &str, service: &ServiceSpec) -> acheron_base::Result<Contract> {
    let operations = service.operations.iter().map(|(name, said)| {
        let mut operation = contract::Operation::new(name, effect_of(said)).about(&said.about);
        operation.idempotent = said.idempotent;
        operation.example = said.example.clone();
        if let Some(ms) = said.timeout_ms {
            operation = operation.deadline(std::time::Duration::from_millis(ms));
        }
        if let Some(arguments) = &said.arguments {
            operation = operation.takes(arguments.clone());
        }
        match &said.result {
            Some(result) => operation.answers(result.clone()),
            None => operation,
        }
    });
    Contract::plain(name, &service.about, operations.collect())
}

/// The effect of a program's operation: the host cannot make what a program changes part of its own transaction.
pub fn effect_of(said: &OperationSpec) -> Effect {
    match said.effect {
        Effect::Read => Effect::Read,
        Effect::Write | Effect::Execute => Effect::Execute,
    }
}

/// What a mountspec says that is taken otherwise, each with its path.
pub fn notes(spec: &Spec) -> Vec<String> {
    let operations = spec
        .services
        .iter()
        .flat_map(|(service, entry)| entry.operations.iter().map(move |(name, said)| (service, name, said.effect)));
    let writes = operations.filter(|(_, _, effect)| *effect == Effect::Write).map(|(service, name, _)| {
        format!("services.{service}.operations.{name}.effect: `write` is taken as `execute`: what a program changes is not part of a transaction of the host")
    });
    writes.collect()
}

/// Whether an id of an agent or a project is a valid directory name.
pub fn is_id(id: &str) -> bool {
    let ordinary = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    (1..=64).contains(&id.len())
        && id.starts_with(ordinary)
        && id.chars().all(|c| ordinary(c) || matches!(c, '_' | '-'))
}

#[derive(Default)]
struct Faults(Vec<ValueFault>);

impl Faults {
    fn add(&mut self, path: &str, message: impl Into<String>) {
        self.0.push(ValueFault { path: path.to_owned(), message: message.into() });
    }

    fn id(&mut self, path: &str, id: &str) {
        if !is_id(id) {
            self.add(path, "an id has up to 64 of a-z, 0-9, _ and -, and begins with a letter or a digit");
        }
    }

    fn folder(&mut self, path: &str, folder: &str) {
        if folder.is_empty() || folder.contains('\0') {
            self.add(path, "must name a directory");
        }
    }

    fn agent(&mut self, path: &str, id: &str, agent: &AgentSpec, spec: &Spec) {
        self.id(path, id);
        if id == "operator" {
            self.add(path, "operator is the user of this host, as in mail; it cannot be the id of an agent");
        }
        if id == "self" {
            self.add(path, "self refers to the calling agent; it cannot be the id of an agent");
        }
        for (at, project) in agent.projects.iter().enumerate().filter(|(_, name)| !spec.projects.contains_key(*name)) {
            let hint = hint(project, spec.projects.keys().map(String::as_str), "projects");
            self.add(&format!("{path}.projects[{at}]"), format!("there is no project {}{hint}", quoted(project)));
        }
        let model = spec.model_of(agent);
        if agent.model.kind.is_some()
            || agent.model.base_url.is_some()
            || agent.model.fallback.is_some()
            || agent.model.command.is_some()
            || agent.model.gateway.is_some()
        {
            self.model(&join(path, "model"), &model);
        }
        self.money(&format!("{path}.limits.money"), agent.limits.money, &model);
        self.money(&format!("{path}.budget.money"), agent.budget.money, &model);
        for (at, rule) in agent.permissions.iter().enumerate() {
            let path = format!("{path}.permissions[{at}]");
            if rule.allow.is_empty() && rule.deny.is_empty() && rule.ask.is_empty() {
                self.add(&path, "neither allows nor denies nor asks anything");
            }
            if rule.ask.contains(&Action::Read) {
                self.add(&join(&path, "ask"), "a read does not wait for a decision; allow it or deny it");
            }
            if rule.always.is_some() && rule.ask.is_empty() {
                self.add(&join(&path, "always"), "belongs to a rule that asks");
            }
            for (at, why) in example_faults(rule, id) {
                self.add(&join(&path, &at), why);
            }
            if let Err(fault) = Pattern::parse(&rule.path) {
                self.add(&join(&path, "path"), fault);
            }
        }
        for (at, wake) in agent.wake.iter().enumerate() {
            // The jobs are not known yet; it is enough that the path is valid for some job.
            if let Err(err) = Selector::parse(&wake.on, id, |job| Some(job.to_owned())) {
                self.add(&format!("{path}.wake[{at}].on"), err.message);
            }
            match (&wake.call, wake.say.trim().is_empty()) {
                (None, true) => self.add(&format!("{path}.wake[{at}].say"), "must not be empty"),
                (Some(_), false) => self.add(&format!("{path}.wake[{at}]"), "give `say` or `call`, not both"),
                _ => (),
            }
        }
    }

    fn money(&mut self, path: &str, money: Option<f64>, model: &ModelSpec) {
        match money {
            Some(money) if money.is_nan() || money <= 0.0 => self.add(path, "must be more than 0"),
            Some(_) if model.prices.input_per_mtok <= 0.0 && model.prices.output_per_mtok <= 0.0 => {
                self.add(path, "needs model.prices; without prices every call costs 0");
            }
            _ => {}
        }
    }

    fn model(&mut self, path: &str, model: &ModelSpec) {
        let named = model.name.as_deref().is_some_and(|name| !name.is_empty());
        match model.kind {
            ModelKind::Replay if !named => self.add(&join(path, "name"), "must name the recording"),
            ModelKind::Acp if model.command.iter().all(String::is_empty) => {
                self.add(&join(path, "command"), "must name the program and its arguments");
            }
            ModelKind::Script | ModelKind::Replay | ModelKind::External | ModelKind::Acp => {}
            _ if !named => self.add(&join(path, "name"), "must name the model"),
            _ => {}
        }
        if model.kind == ModelKind::Anthropic && model.api == ModelApi::Responses {
            self.add(&join(path, "api"), "anthropic has no responses API; leave it out");
        }
        if model.kind == ModelKind::External && model.protocol == ModelProtocol::Native {
            self.add(
                &join(path, "protocol"),
                "an external model writes its reply itself and calls no tools; leave it out",
            );
        }
        if let Some(url) = model.base_url.as_deref().filter(|url| !begins(url, &["http://", "https://"])) {
            self.add(
                &join(path, "base_url"),
                format!("{} is not a URL; it must begin with http:// or https://", quoted(url)),
            );
        }
        if model.kind != ModelKind::Acp && (!model.command.is_empty() || model.gateway.is_some()) {
            let key = if model.command.is_empty() { "gateway" } else { "command" };
            self.add(&join(path, key), "belongs to a model of the kind acp");
        }
        for (key, other) in [("fallback", &model.fallback), ("gateway", &model.gateway)] {
            let (Some(other), path) = (other, join(path, key)) else { continue };
            match other.kind {
                ModelKind::Script | ModelKind::Replay if key == "gateway" => self.model(&path, &other.over(model)),
                ModelKind::Script | ModelKind::Replay | ModelKind::External | ModelKind::Acp => {
                    self.add(&join(&path, "kind"), "a second model needs a server: name a kind such as openai");
                }
                _ => self.model(&path, &other.over(model)),
            }
        }
    }

    fn service(&mut self, path: &str, name: &str, service: &ServiceSpec) {
        if let Some(mcp) = &service.mcp {
            return self.mcp(path, name, service, mcp);
        }
        if service.command.is_empty() && service.operations.is_empty() {
            return self.built_in(path, name, service);
        }
        self.id(path, name);
        if BUILT_IN.contains(&name) || RESERVED.contains(&name) {
            self.add(path, "this name is reserved; choose another");
        }
        match service.command.first() {
            None => self.add(&join(path, "command"), "must name the program"),
            Some(program) if program.is_empty() => self.add(&format!("{path}.command[0]"), "must name the program"),
            Some(_) => {}
        }
        if service.operations.is_empty() {
            self.add(&join(path, "operations"), "must name at least one operation");
        }
        self.of_web_search(path, service);
        let before = self.0.len();
        for (name, operation) in &service.operations {
            let path = join(&join(path, "operations"), name);
            for (word, schema) in [("arguments", &operation.arguments), ("result", &operation.result)] {
                self.0.extend(schema.as_ref().and_then(|schema| operation_schema::fault(&join(&path, word), schema)));
            }
        }
        if self.0.len() > before {
            return; // a contract of wrong schemas would only repeat it
        }
        if let Err(err) = contract_of(name, service) {
            let message = err.message.split_once(": ").map_or(err.message.clone(), |(_, rest)| rest.to_owned());
            self.add(&join(path, "operations"), message);
        }
    }

    fn of_web_search(&mut self, path: &str, service: &ServiceSpec) {
        for (word, given) in [
            ("backend", service.backend.is_some()),
            ("url", service.url.is_some()),
            ("timeout_ms", service.timeout_ms.is_some()),
        ] {
            if given {
                self.add(&join(path, word), "is only for web_search");
            }
        }
    }

    fn mcp(&mut self, path: &str, name: &str, service: &ServiceSpec, mcp: &McpSpec) {
        self.id(path, name);
        if BUILT_IN.contains(&name) || RESERVED.contains(&name) {
            self.add(path, "this name is reserved; choose another");
        }
        if !service.command.is_empty() {
            self.add(&join(path, "command"), "belongs in `mcp`: {\"mcp\": {\"command\": […]}}");
        }
        self.of_web_search(path, service);
        let here = join(path, "mcp");
        match (mcp.command.first(), mcp.url.as_deref()) {
            (None, None) => self.add(&here, "must name the program (`command`) or the server (`url`)"),
            (Some(_), Some(_)) => self.add(&join(&here, "url"), "give `command` or `url`, not both"),
            (Some(program), None) if program.is_empty() => {
                self.add(&format!("{here}.command[0]"), "must name the program");
            }
            (None, Some(url)) if !begins(url, &["http://", "https://"]) => {
                let said = format!("{} is not a URL; it must begin with http:// or https://", quoted(url));
                self.add(&join(&here, "url"), said);
            }
            _ => {}
        }
        for (word, given) in
            [("env", !service.env.is_empty()), ("network", service.network), ("unconfined", service.unconfined)]
        {
            if given && mcp.command.is_empty() && mcp.url.is_some() {
                self.add(&join(path, word), "is for a program; a server at a URL is not started here");
            }
        }
        if let Some(variable) = &mcp.token_env {
            let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
            if mcp.url.is_none() {
                self.add(&join(&here, "token_env"), "is for `url`; a program has its variables in `env`");
            } else if variable.is_empty() || !variable.chars().all(plain) {
                let said = format!("{} is not the name of a variable", quoted(variable));
                self.add(&join(&here, "token_env"), said);
            }
        }
        if service.scope == ServiceScope::Node && !mcp.command.is_empty() {
            let said = "a server that is started runs in the sandbox of one agent; leave it out, or name a `url`";
            self.add(&join(path, "scope"), said);
        }
        for (operation, said) in &service.operations {
            let path = join(&join(path, "operations"), operation);
            if !contract::schema::is_name(operation) {
                let hint = "`ls tools` of the service shows the names";
                self.add(&path, format!("{} cannot be the name of an operation; {hint}", quoted(operation)));
            }
            for (word, given) in [
                ("about", !said.about.is_empty()),
                ("arguments", said.arguments.is_some()),
                ("result", said.result.is_some()),
            ] {
                if given {
                    self.add(&join(&path, word), "comes from the server; leave it out");
                }
            }
        }
    }

    fn built_in(&mut self, path: &str, name: &str, service: &ServiceSpec) {
        if !BUILT_IN.contains(&name) {
            let hint = hint(name, BUILT_IN, "built-in services");
            return self.add(path, format!("has no command, and is not a built-in service{hint}"));
        }
        if name != "web_search" {
            return self.add(path, "has no settings");
        }
        match service.url.as_deref() {
            Some(url) if !begins(url, &["http://", "https://"]) => {
                self.add(
                    &join(path, "url"),
                    format!("{} is not a URL; it must begin with http:// or https://", quoted(url)),
                );
            }
            None => self.add(&join(path, "url"), "must be the URL of the backend, such as http://127.0.0.1:8888"),
            _ => {}
        }
        if service.backend.is_none() {
            self.add(&join(path, "backend"), "must name the backend: searxng");
        }
    }
}

fn begins(text: &str, any: &[&str]) -> bool {
    any.iter().any(|start| text.strip_prefix(start).is_some_and(|rest| !rest.is_empty()))
}

/// Checks the path of a bind in `fs/`: absolute, normalised.
fn bind_place(place: &str) -> Result<(), &'static str> {
    let Some(rest) = place.strip_prefix('/') else {
        return Err("must begin with /, the root of the project's fs/");
    };
    match rest.split('/').any(|name| matches!(name, "" | "." | "..") || name.contains('\0')) && !rest.is_empty() {
        true => Err("must be a plain path, without //, ., .. or a slash at the end"),
        false => Ok(()),
    }
}
