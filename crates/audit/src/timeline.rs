//! A line of the audit as the timeline of an agent shows it: which agent it is about, without what belongs to the chain, and
//! with a link to the job. Text in, text out; the kind is open, so that a record of a new kind that names its agent is in the
//! timeline without a change here.

/// One line of a timeline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimelineLine<'a> {
    /// The number of the line in the audit.
    pub seq: u64,
    /// What happened.
    pub kind: &'a str,
    /// The agent that the line is about.
    pub agent: &'a str,
    /// The line without an end of line.
    pub shown: String,
}

/// The line of a timeline that this line of the audit is; `None` if it is about no agent.
pub fn timeline_line(line: &str) -> Option<TimelineLine<'_>> {
    let rest = line.strip_prefix(r#"{"seq":"#)?;
    let (seq, rest) = rest.split_once(r#","prev":""#)?;
    let (_, rest) = rest.split_once(r#"","#)?;
    let agent = agent_of(rest)?;
    let mut shown = format!(r#"{{"seq":{seq},{}"#, without_arguments(rest));
    // The operator's own calls name the agent already; a denial and a request to a model name it in another way.
    if field(rest, "agent").is_none() {
        insert(&mut shown, "agent", agent);
    }
    if let Some(job) = field(rest, "job") {
        insert(&mut shown, "link", &format!("/agents/{agent}/jobs/{job}"));
    }
    Some(TimelineLine { seq: seq.parse().ok()?, kind: field(rest, "kind")?, agent, shown })
}

/// The agent that a line names, that pays, or that asks.
fn agent_of(line: &str) -> Option<&str> {
    field(line, "agent").or_else(|| field(line, "payer")).or_else(|| field(line, "principal")?.strip_prefix("agent "))
}

/// A text of the line. In JSON a quotation mark inside a text follows a backslash, so that what stands between a comma, a mark
/// and the name is no part of one. Names and ids need no escape: a value that has one is none of them.
fn field<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    let sought = format!(r#","{name}":""#);
    let start = line.find(&sought)? + sought.len();
    let value = &line[start..start + line[start..].find('"')?];
    (!value.contains('\\') && !value.is_empty()).then_some(value)
}

/// Without the hash of what was given to a call: the job shows that itself.
fn without_arguments(line: &str) -> String {
    let found = line.find(r#","arguments":{"#);
    match found.and_then(|start| Some((start, start + line[start..].find('}')? + 1))) {
        Some((start, end)) => format!("{}{}", &line[..start], &line[end..]),
        None => line.to_owned(),
    }
}

fn insert(line: &mut String, name: &str, value: &str) {
    if line.ends_with('}') {
        line.pop();
        line.push_str(&format!(r#","{name}":"{value}"}}"#));
    }
}

#[cfg(test)]
mod tests;
