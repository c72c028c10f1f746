//! The figures of a host as Prometheus reads them (text format 0.0.4). Pure. Labels are few: kinds, states and agents, never paths
//! or ids of jobs.

use std::fmt::Write as _;

use serde_json::Value;

/// A figure of `meta/metrics.json`: its key there, its name, its type, its label if it has one value per word, its help.
const FIGURES: [(&str, &str, &str, Option<&str>, &str); 10] = [
    ("refused", "acheron_refused_total", "counter", None, "Requests that access control or a listener refused."),
    ("jobs", "acheron_jobs", "gauge", Some("state"), "Jobs by state."),
    ("commits", "acheron_commits_total", "counter", None, "Commits to the database."),
    ("requests", "acheron_fuse_requests_total", "counter", Some("kind"), "Requests of the kernel by kind."),
    ("parked", "acheron_parked_reads", "gauge", None, "Requests of the kernel that wait for an event."),
    ("open_handles", "acheron_open_handles", "gauge", None, "Open files of the mount."),
    ("inodes", "acheron_inodes", "gauge", None, "Nodes that the kernel knows."),
    ("kept_bytes", "acheron_kept_bytes", "gauge", None, "Memory that open files hold."),
    ("over_budget", "acheron_over_budget_total", "counter", None, "Opens that were refused for want of memory."),
    ("result_bytes", "acheron_result_bytes", "gauge", None, "Memory that results of jobs hold."),
];

/// A figure of an agent: its key in `spent` of `chat/status.json`, its name, the type of tokens, its help.
const OF_AGENTS: [(&str, &str, Option<&str>, &str); 6] = [
    ("input", "acheron_agent_tokens_total", Some("input"), "Tokens that models were asked and answered, by agent."),
    ("output", "acheron_agent_tokens_total", Some("output"), ""),
    ("cache_read", "acheron_agent_tokens_total", Some("cache_read"), ""),
    ("cache_write", "acheron_agent_tokens_total", Some("cache_write"), ""),
    ("rounds", "acheron_agent_model_calls_total", None, "Calls of models, by agent."),
    ("money", "acheron_agent_cost_usd_total", None, "Money that models have cost, by agent."),
];

/// The text for these metrics, and for the `chat/status.json` of these agents.
pub fn text(metrics: &Value, agents: &[(String, Value)]) -> String {
    let mut text = String::new();
    for (key, name, kind, label, help) in FIGURES {
        let rows: Vec<(Vec<(&str, &str)>, &Value)> = match (&metrics[key], label) {
            (value @ Value::Number(_), None) => vec![(vec![], value)],
            (Value::Object(values), Some(label)) => {
                values.iter().map(|(word, value)| (vec![(label, word.as_str())], value)).collect()
            }
            _ => continue,
        };
        family(&mut text, name, kind, help, &rows);
    }
    let mut at = 0;
    while at < OF_AGENTS.len() {
        let (name, help) = (OF_AGENTS[at].1, OF_AGENTS[at].3);
        let mut rows = Vec::new();
        for (key, _, sort, _) in OF_AGENTS.iter().filter(|figure| figure.1 == name) {
            for (agent, status) in agents {
                let mut labels = vec![("agent", agent.as_str())];
                labels.extend(sort.map(|sort| ("type", sort)));
                rows.push((labels, &status["spent"][*key]));
            }
        }
        family(&mut text, name, "counter", help, &rows);
        at += OF_AGENTS.iter().filter(|figure| figure.1 == name).count();
    }
    let queued: Vec<_> =
        agents.iter().map(|(agent, status)| (vec![("agent", agent.as_str())], &status["queued"])).collect();
    family(&mut text, "acheron_agent_queued_turns", "gauge", "Turns that wait, by agent.", &queued);
    text
}

/// One name with its values. The lines of a family stand together.
fn family(text: &mut String, name: &str, kind: &str, help: &str, rows: &[(Vec<(&str, &str)>, &Value)]) {
    let rows: Vec<_> = rows.iter().filter(|(_, value)| value.is_number()).collect();
    if rows.is_empty() {
        return;
    }
    _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
    for (labels, value) in rows {
        let labels: Vec<String> = labels.iter().map(|(label, word)| format!("{label}=\"{}\"", escaped(word))).collect();
        let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        _ = writeln!(text, "{name}{labels} {value}");
    }
}

fn escaped(word: &str) -> String {
    word.replace('\\', r"\\").replace('"', r#"\""#).replace('\n', r"\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn figures_become_families_with_few_labels() {
        let metrics = json!({"refused": 2, "jobs": {"done": 3, "a\"b\n": 1}, "parked": null, "unknown": 7});
        let status = json!({"spent": {"input": 5, "output": 1, "rounds": 2, "money": 0.25}, "queued": 0});
        let said = text(&metrics, &[("ada".to_owned(), status)]);
        let plain: Vec<&str> = said.lines().filter(|line| !line.starts_with('#')).collect();
        assert_eq!(
            plain,
            [
                "acheron_refused_total 2",
                r#"acheron_jobs{state="done"} 3"#,
                r#"acheron_jobs{state="a\"b\n"} 1"#,
                r#"acheron_agent_tokens_total{agent="ada",type="input"} 5"#,
                r#"acheron_agent_tokens_total{agent="ada",type="output"} 1"#,
                r#"acheron_agent_model_calls_total{agent="ada"} 2"#,
                r#"acheron_agent_cost_usd_total{agent="ada"} 0.25"#,
                r#"acheron_agent_queued_turns{agent="ada"} 0"#,
            ]
        );
        assert_eq!(said.matches("# TYPE acheron_agent_tokens_total counter").count(), 1);
        assert!(said.ends_with('\n'));
    }
}
