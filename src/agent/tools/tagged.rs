//! Finds the job that a write started: the writer chooses a correlation id, which the tree shows as a link.

use serde_json::{Value, json};

/// The content with `id` as its correlation id, and the path of the link to its job; `None` for anything but one JSON
/// command to a control file. A correlation id in the content is kept.
pub(super) fn tagged(path: &str, content: &str, id: &str) -> Option<(String, String)> {
    let names: Vec<&str> = path.split('/').filter(|name| !name.is_empty() && *name != ".").collect();
    let [.., "control", file] = names.as_slice() else { return None };
    let service = file.strip_suffix(".json")?;
    // Waits and signals are not service calls.
    if names.contains(&"..") || names.get(2) == Some(&"events") {
        return None;
    }
    let Ok(Value::Object(mut command)) = serde_json::from_str(content) else { return None };
    let place = match service {
        "invoke" => &mut command,
        _ => match command.entry("_meta").or_insert_with(|| json!({})) {
            Value::Object(meta) => meta,
            _ => return None,
        },
    };
    let chosen = place.entry("correlation_id").or_insert_with(|| id.into()).as_str()?.to_owned();
    if chosen.is_empty() || chosen.contains('/') || chosen.starts_with('.') {
        return None;
    }
    let agent = if names[0] == "agents" { names[1] } else { "self" };
    Some((Value::Object(command).to_string(), format!("/agents/{agent}/jobs/by/{chosen}")))
}

/// The job that a link points to.
pub(super) fn job_of(target: &str) -> Option<String> {
    let name = target.trim_end_matches('/').rsplit('/').next()?;
    name.starts_with("job-").then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_call_of_a_service_is_tagged() {
        for (path, content, wanted) in [
            (
                "agents/self/terminal/control/invoke.json",
                r#"{"op":"exec"}"#,
                Some(r#"{"op":"exec","correlation_id":"x"} /agents/self/jobs/by/x"#),
            ),
            (
                "/agents/ada/terminal/control/exec.json",
                r#"{"a":1}"#,
                Some(r#"{"a":1,"_meta":{"correlation_id":"x"}} /agents/ada/jobs/by/x"#),
            ),
            (
                "nodes/local/services/s/control/exec.json",
                r#"{"_meta":{"correlation_id":"mine"}}"#,
                Some(r#"{"_meta":{"correlation_id":"mine"}} /agents/self/jobs/by/mine"#),
            ),
            ("agents/self/terminal/control/invoke.json", r#"{"op":"exec"} {"op":"exec"}"#, None),
            ("agents/self/terminal/control/exec.json", r#"{"_meta":3}"#, None),
            ("agents/self/events/control/wait.json", r#"{"paths":[]}"#, None),
            ("agents/self/chat/control/reply", "hello", None),
            ("agents/self/memory/items/a/content", "{}", None),
            ("control/invoke.json", "{}", Some(r#"{"correlation_id":"x"} /agents/self/jobs/by/x"#)),
        ] {
            let shown = tagged(path, content, "x").map(|(content, link)| format!("{content} {link}"));
            assert_eq!(shown.as_deref(), wanted, "{path}");
        }
        assert_eq!(job_of("../job-1"), Some("job-1".to_owned()));
        assert_eq!(job_of("elsewhere"), None);
    }
}
