//! What has no place in a story: addresses, commands, paths, handles, the names of roles before a colon. Only `prose` uses it.

use std::sync::LazyLock;

use regex::Regex;

use crate::lint::ProseHit;
use crate::md::clip;

/// Each has a name for its tests. They are matched against a folded text.
const FOREIGN: [(&str, &str); 7] = [
    ("address", r"(?i)\b(?:https?|ftp|file)://\S+|\bwww\.\S+|\b[\w-]+\.(?:com|org|net|io|dev|info)\b(?:/\S*)?"),
    // Servers quote the key that they refuse.
    (
        "credential",
        r"(?i)\b(?:sk|pk|rk|ghp|gho|xox[a-z])[-_][\w-]{6,}|\b(?:key|token|bearer)\s+[A-Za-z]*\d[\w-]{6,}|\b(?:[A-Za-z]+\d|\d+[A-Za-z])[A-Za-z0-9_-]{18,}",
    ),
    ("code", r"`[^`\n]*`|```|\$\([^)]*\)"),
    (
        "command",
        r"(?i)(?:^|[\s;|&])(?:sudo\s+\S+|rm\s+-\w+|(?:curl|wget|ssh|scp|chmod|chown|mkfs|dd|kill|apt|pip|npm|git|bash|sh|python3?)\s+(?:-\S+|[~./]\S+|\w+[:=@]\S+|install\s+\S+|clone\s+\S+)[^.!?\n]*)",
    ),
    (
        "path",
        r"(?:^|[\s(])(?:~|\.{1,2})?/[\w.-]+(?:/[\w.-]*)*|\b[\w.-]+(?:/[\w.-]+)+\.\w+|(?i:\b[\w-]+\.(?:md|json|ndjson|txt|sh|exe|toml|yaml)\b)",
    ),
    ("handle", r"@[\p{L}_][\p{L}\p{N}_]*"),
    (
        "role",
        r"(?im:(?:^|[.!?]\s+)\W*(?P<at>(?:narrator|game\s*master|gm|dm|kernel|system|assistant|user|player|model|developer|ooc)\s*:))",
    ),
];

static PATTERNS: LazyLock<Vec<(&str, Regex)>> =
    LazyLock::new(|| FOREIGN.iter().filter_map(|(name, pattern)| Some((*name, Regex::new(pattern).ok()?))).collect());

/// Where a folded text has what has no place in a story. Handles may stand in a suggestion.
pub fn hits(text: &str, handles: bool) -> Vec<ProseHit> {
    let own = PATTERNS.iter().filter(|(name, _)| !handles || *name != "handle");
    let found = own.flat_map(|(name, regex)| {
        let met = regex.captures_iter(text).filter_map(|found| found.name("at").or_else(|| found.get(0)));
        met.map(move |found| (name, found)).collect::<Vec<_>>()
    });
    let report = |name: &str, found: &str| format!("\"{}\" is no part of a story ({name})", clip(found.trim(), 40));
    found.map(|(name, found)| ProseHit { range: found.range(), report: report(name, found.as_str()) }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_pattern_has_a_hit_and_a_miss() {
        let cases = [
            ("address", "See https://example.com/x for it.", "He says that the net is mended."),
            ("credential", "bad key sk-SECRET123 was sent.", "The key 12 of the tower is lost, and its token."),
            ("code", "Type `rm -rf ~` now.", "He says 'no' and goes."),
            ("command", "Now sudo reboot the town.", "Kill the light, git along, and dd it."),
            ("path", "It stands in campaigns/i1/state.json today.", "Salt and/or oil, 3/4 of it."),
            ("handle", "- Keeper's key (@keepers_key)", "A price @ the door."),
            ("role", "Fog. Narrator: fine", "The narrator of the tale is silent: nobody asks."),
        ];
        assert_eq!(cases.map(|(name, ..)| name), FOREIGN.map(|(name, _)| name), "every pattern has its case");
        for (name, hit, miss) in cases {
            assert!(hits(hit, false).iter().any(|own| own.report.ends_with(&format!("({name})"))), "{name}: {hit}");
            assert!(hits(miss, false).is_empty(), "{name}: {miss} {:?}", hits(miss, false));
        }
        assert!(hits("[ASK]{@harbourer_jun about the boats}", true).is_empty());
    }
}
