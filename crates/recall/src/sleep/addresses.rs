//! Addresses outside the wiki in a line: whoever follows one tells the other side something, so nobody may invent one.

/// The addresses of a line: `https://…`, the target of a link that is no page, and what a reader would take for one:
/// `www.example.org`, `example.org/a`, `a@example.org`.
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
    found.extend(bare(line));
    found
}

/// Ends of names of hosts that are no ends of file names.
const HOSTS: [&str; 17] = [
    "com", "org", "net", "info", "biz", "xyz", "io", "dev", "app", "ai", "ru", "cn", "top", "site", "online", "link",
    "click",
];

/// Addresses without a scheme. Links to pages are none.
fn bare(line: &str) -> Vec<&str> {
    let outside = line.split("[[").map(|part| part.split_once("]]").map_or(part, |(_, after)| after));
    let words = outside.flat_map(|part| part.split(|c: char| c.is_whitespace() || "()<>[]{}\"'`|,;*".contains(c)));
    let words = words.map(|word| word.trim_end_matches(['.', ':', '!', '?']));
    words.filter(|word| !word.contains("://") && !word.ends_with(".md") && is_address(word)).collect()
}

fn is_address(word: &str) -> bool {
    let (host, rest) = word.find(['/', '?', '#', ':']).map_or((word, ""), |at| word.split_at(at));
    let (user, host) = host.rsplit_once('@').map_or((None, host), |(user, host)| (Some(user), host));
    let Some((before, end)) = host.rsplit_once('.') else { return false };
    let named = !before.is_empty() && end.len() >= 2 && end.bytes().all(|byte| byte.is_ascii_alphabetic());
    let plain = before.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-.".contains(&byte));
    let known = HOSTS.contains(&end.to_ascii_lowercase().as_str());
    let www = before.get(..3).is_some_and(|begin| begin.eq_ignore_ascii_case("www"));
    named && plain && (user.is_some_and(|user| !user.is_empty()) || www || known || rest.starts_with(['/', '?']))
}

fn length(text: &str) -> usize {
    text.find(|c: char| c.is_whitespace() || ")>]\"'`".contains(c)).unwrap_or(text.len())
}
