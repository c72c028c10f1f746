//! The names that become tokens of subjects. A text of a user never does: dots, stars and spaces are syntax there.

use std::fmt;

use acheron_base::{Error, Result, quoted};

/// The name by which every host sees itself; no host can be called so.
pub const LOCAL: &str = "local";
/// The operator of a host, in place of an agent.
pub const OPERATOR: &str = "operator";

/// Refuses what is not the name of a host: `[a-z0-9][a-z0-9-]{0,31}`.
pub fn check_node(name: &str) -> Result<()> {
    let fine = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let is_name = (1..=32).contains(&name.len()) && name.bytes().all(fine) && !name.starts_with('-');
    match (is_name, name) {
        (true, LOCAL) => Err(Error::invalid("a host cannot be called local: every host calls itself so")),
        (true, _) => Ok(()),
        (false, _) => Err(Error::invalid(format!(
            "{} is not the name of a host: it has up to 32 of a-z, 0-9 and -, and does not begin with -",
            quoted(name)
        ))),
    }
}

/// Whether a text is one token of a subject as agents, services and queues are called.
pub fn is_token(name: &str) -> bool {
    let fine = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-' || byte == b'_';
    (1..=64).contains(&name.len()) && name.bytes().all(fine)
}

/// Any text as one token.
pub fn token_of(text: &str) -> String {
    text.bytes().map(|byte| format!("{byte:02x}")).collect()
}

/// The text behind [`token_of`].
pub fn text_of(token: &str) -> Option<String> {
    let digit = |byte: u8| (byte as char).to_digit(16).filter(|_| !byte.is_ascii_uppercase());
    let bytes: Option<Vec<u8>> = match token.len().is_multiple_of(2) {
        true => token.as_bytes().chunks(2).map(|pair| Some((digit(pair[0])? * 16 + digit(pair[1])?) as u8)).collect(),
        false => None,
    };
    String::from_utf8(bytes?).ok()
}

/// An agent of some host, or its operator: `styx/charon`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FarAgent {
    pub node: String,
    pub agent: String,
}

impl FarAgent {
    pub fn new(node: &str, agent: &str) -> Result<FarAgent> {
        check_node(node)?;
        match is_token(agent) {
            true => Ok(FarAgent { node: node.to_owned(), agent: agent.to_owned() }),
            false => Err(Error::invalid(format!("{} is not the name of an agent", quoted(agent)))),
        }
    }

    pub fn parse(text: &str) -> Result<FarAgent> {
        let wrong = || Error::invalid(format!("{} is not node/agent", quoted(text)));
        let (node, agent) = text.split_once('/').ok_or_else(wrong)?;
        FarAgent::new(node, agent)
    }
}

impl fmt::Display for FarAgent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.node, self.agent)
    }
}

/// Agents of other hosts, as a mountspec names them: `styx/charon`, `styx/*` or `*`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FarPattern {
    node: Option<String>,
    agent: Option<String>,
}

impl FarPattern {
    pub fn parse(text: &str) -> Result<FarPattern> {
        if text == "*" {
            return Ok(FarPattern { node: None, agent: None });
        }
        let wrong = || Error::invalid(format!("{} names nobody: it is node/agent, node/* or *", quoted(text)));
        let (node, agent) = text.split_once('/').ok_or_else(wrong)?;
        check_node(node)?;
        match agent {
            "*" => Ok(FarPattern { node: Some(node.to_owned()), agent: None }),
            agent if is_token(agent) => Ok(FarPattern { node: Some(node.to_owned()), agent: Some(agent.to_owned()) }),
            _ => Err(wrong()),
        }
    }

    pub fn matches(&self, who: &FarAgent) -> bool {
        self.node.as_ref().is_none_or(|node| *node == who.node)
            && self.agent.as_ref().is_none_or(|agent| *agent == who.agent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_has_a_name_that_is_one_token() {
        for fine in ["styx", "a", "host-1", "0", &"x".repeat(32)] {
            assert!(check_node(fine).is_ok(), "{fine}");
        }
        for wrong in ["", "local", "-a", "a.b", "a*", ">", "Styx", "a b", "a/b", "é", &"x".repeat(33)] {
            assert_eq!(check_node(wrong).unwrap_err().code.name(), "invalid_payload", "{wrong}");
        }
    }

    #[test]
    fn a_pattern_names_one_all_of_a_host_or_all() {
        let who = FarAgent::parse("styx/charon").unwrap();
        for (pattern, matches) in
            [("*", true), ("styx/*", true), ("styx/charon", true), ("styx/ada", false), ("lethe/*", false)]
        {
            assert_eq!(FarPattern::parse(pattern).unwrap().matches(&who), matches, "{pattern}");
        }
        for wrong in ["", "styx", "*/charon", "styx/", "styx/**", "a/b/c", ">"] {
            assert!(FarPattern::parse(wrong).is_err(), "{wrong}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_one_token_and_comes_back(text: String) {
            let token = token_of(&text);
            proptest::prop_assert!(token.bytes().all(|byte| byte.is_ascii_hexdigit()));
            proptest::prop_assert_eq!(text_of(&token), Some(text));
        }
    }
}
