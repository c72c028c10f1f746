//! Rules for names: keys of prompts and sections, tags, tools, and the address of a section.

use crate::fault::Fault;

/// The rule for namespaces, prompt keys, section keys and tags, as the seed gives it.
pub const KEY: &str = "^[a-z0-9][a-z0-9._-]{0,63}$";

/// The key without the white space around it and in lower case, if it then keeps the rule.
pub fn key(what: &str, given: &str) -> Result<String, Fault> {
    let key = given.trim().to_lowercase();
    if key.is_empty() {
        return Err(Fault::validation(format!("{what} must be a non-empty string")));
    }
    if !keeps(&key) {
        return Err(Fault::validation(format!("{what} `{}` must match {KEY}", clipped(given))));
    }
    Ok(key)
}

/// A name that is part of a path on disk: nothing is trimmed or folded, since two names must not be one file.
pub fn exact(what: &str, given: &str) -> Result<(), Fault> {
    match keeps(given) {
        true => Ok(()),
        false => Err(Fault::overrides(format!("{what} `{}` must match {KEY}", clipped(given)))),
    }
}

fn keeps(key: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"._-".contains(&byte);
    let first = key.bytes().next().is_some_and(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    first && key.len() <= 64 && key.bytes().all(inner)
}

/// `<service>.<operation>`.
pub fn tool(given: &str) -> Result<(), Fault> {
    let part = |part: &str| {
        (1..=64).contains(&part.len())
            && part.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-".contains(&byte))
    };
    match given.split_once('.') {
        Some((service, operation)) if part(service) && part(operation) => Ok(()),
        _ => Err(Fault::validation(format!("a tool is <service>.<operation>, not `{}`", clipped(given)))),
    }
}

/// A line of 1 to `most` ASCII characters: what is shown to every model, whatever its tokenizer.
pub fn line(what: &str, given: &str, most: usize) -> Result<String, Fault> {
    let text = given.trim();
    match text.is_ascii() && (1..=most).contains(&text.len()) && !text.contains('\n') {
        true => Ok(text.to_owned()),
        false => Err(Fault::validation(format!("{what} must be one line of 1 to {most} ASCII characters"))),
    }
}

pub fn clipped(text: &str) -> String {
    text.chars().take(80).collect()
}

/// How a path is written for people and models: `a/b` as `a.b`.
pub fn dotted(path: &str) -> String {
    path.replace('/', ".")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_trimmed_folded_and_then_has_to_keep_the_rule() {
        let (long, longer) = ("k".repeat(64), "k".repeat(65));
        let rows = [
            (" spacing.out ", Ok("spacing.out")),
            ("ABC", Ok("abc")),
            (long.as_str(), Ok(long.as_str())),
            ("", Err("section key must be a non-empty string")),
            ("   ", Err("section key must be a non-empty string")),
            ("Invalid Key", Err("section key `Invalid Key` must match ^[a-z0-9][a-z0-9._-]{0,63}$")),
            ("-a", Err("section key `-a` must match ^[a-z0-9][a-z0-9._-]{0,63}$")),
            ("a/b", Err("section key `a/b` must match ^[a-z0-9][a-z0-9._-]{0,63}$")),
            ("..", Err("section key `..` must match ^[a-z0-9][a-z0-9._-]{0,63}$")),
        ];
        for (given, expected) in rows {
            let got = key("section key", given).map_err(|fault| fault.message);
            assert_eq!(got.as_deref().map_err(String::as_str), expected, "{given:?}");
        }
        assert!(key("section key", &longer).is_err());
    }

    #[test]
    fn a_tool_is_an_operation_of_a_service() {
        for good in ["memory.search", "search_code.find-all"] {
            assert!(tool(good).is_ok(), "{good}");
        }
        for bad in ["", "memory", "memory.", ".x", "a.b.c", " a.b", "A.b", "a.b "] {
            assert!(tool(bad).is_err(), "{bad:?}");
        }
    }
}
