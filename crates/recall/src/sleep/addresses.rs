//! Addresses outside the wiki in a line: whoever follows one tells the other side something, so nobody may invent one.

/// The addresses of a line: `https://…`, and the target of a link that is no page.
pub fn addresses(line: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for (at, _) in line.match_indices("://") {
        let scheme = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
        let begin = line[..at]
            .rfind(|c| !scheme(c))
            .map_or(0, |before| before + line[before..].chars().next().map_or(1, char::len_utf8));
        found.push(&line[begin..at + 3 + length(&line[at + 3..])]);
    }
    for (at, _) in line.match_indices("](") {
        let target = line[at + 2..].trim_start().trim_start_matches('<');
        let target = &target[..length(target)];
        let file = target.split('#').next().unwrap_or_default();
        let inside = file.ends_with(".md") || file.is_empty();
        if (!inside || target.starts_with("//")) && !target.contains("://") {
            found.push(target);
        }
    }
    found
}

fn length(text: &str) -> usize {
    text.find(|c: char| c.is_whitespace() || ")>]\"'`".contains(c)).unwrap_or(text.len())
}
