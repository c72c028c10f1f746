//! What `acheron mount` says when it is ready: which agent sees which project, and what of the mountspec does not work.

use std::io::IsTerminal;

use super::{plain_text, say};
use crate::spec::Spec;

/// The agents that are listed.
const LISTED: usize = 20;

/// One line per agent, on a terminal: a script reads one line.
pub fn tell_who_sees(spec: &Spec) {
    if std::io::stdout().is_terminal() {
        say(&who_sees(spec));
    }
}

fn who_sees(spec: &Spec) -> String {
    let mut text = String::new();
    for (id, agent) in spec.agents.iter().take(LISTED) {
        let seen: Vec<String> = agent.projects.iter().map(|name| project(spec, name)).collect();
        let seen = if seen.is_empty() { "no project".to_owned() } else { seen.join(", ") };
        text.push_str(&format!("  {id} sees {seen}\n"));
    }
    if spec.agents.len() > LISTED {
        text.push_str(&format!("  and {} more agents\n", spec.agents.len() - LISTED));
    }
    text
}

/// What does not work, one note each.
pub fn tell_faults<'a>(faults: impl Iterator<Item = &'a str>) {
    for fault in faults {
        eprintln!("{}", plain_text::for_stderr(&format!("note: {fault}")));
    }
}

fn project(spec: &Spec, name: &str) -> String {
    let binds = spec.projects.get(name).into_iter().flat_map(|project| project.binds.values());
    match binds.clone().all(|bind| bind.read_only) && binds.count() > 0 {
        true => format!("{name} (read-only)"),
        false => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_agent_is_told_with_its_projects() {
        let spec = r#"{"agents": {"ann": {"projects": ["a", "b"]}, "bob": {}}, "projects": {
            "a": {"binds": {"/": {"path": "/tmp", "read_only": true}}},
            "b": {"binds": {"/": {"path": "/tmp", "read_only": false}}}}}"#;
        let spec: Spec = serde_json::from_str(spec).unwrap();
        assert_eq!(who_sees(&spec), "  ann sees a (read-only), b\n  bob sees no project\n");
    }
}
