//! The names of temporary files, as programs make them up that save by rename. Pure; `scratch` uses it.
//!
//! With the real name in it: `.R.swp`, `R~` (vim), `#R#` (Emacs), `R.tmp.1.ab`, `R.0f3e9a.tmp`, `R.vsctmp`, `R.lock`,
//! `R.1763405000` (Node), `.R.aB3xYz` (rsync), `R.AB3XYZ` (GLib), `.R123456` (Go). Without it: `sedAb3xYz`, `4913` (vim),
//! `tmpabcdef` (Python), `.goutputstream-AB3XYZ` (GLib), `123456.tmp` (Java), a UUID, `aB3xYz9Q` (`perl -i`).

/// The names of files that `name` may be a draft of, the longest first.
pub fn drafts_of(name: &str) -> impl Iterator<Item = &str> {
    let mut found: Vec<&str> = parts(name).filter(|real| is_draft(name, real)).collect();
    let go = name.strip_prefix('.').map(|rest| rest.trim_end_matches(|c: char| c.is_ascii_digit()));
    found.extend(go.filter(|real| !real.is_empty() && name.len() - real.len() > 5));
    found.into_iter()
}

/// Whether what `name` has around `real` is that of a temporary file.
fn is_draft(name: &str, real: &str) -> bool {
    let at = real.as_ptr() as usize - name.as_ptr() as usize;
    let (before, after) = (&name[..at], &name[at + real.len()..]);
    let words =
        || [before, after].into_iter().flat_map(|side| side.split(is_separator)).filter(|word| !word.is_empty());
    let temporary = |word: &str| {
        matches!(word, "tmp" | "temp" | "vsctmp" | "lock" | "swp" | "swo" | "swx" | "swpx") || is_random(word)
    };
    let rsync = before == "." && after.strip_prefix('.').is_some_and(|end| end.len() == 6 && is_alphanumeric(end));
    match (before, after) {
        ("", "~") | ("#", "#") => true,
        _ => rsync || words().any(temporary) && matches!(before, "" | "." | "#" | "tmp." | "tmp-" | ".tmp." | ".tmp-"),
    }
}

/// Names that programs make up without the real one.
pub fn is_made_up(name: &str) -> bool {
    let sed = name.strip_prefix("sed").is_some_and(|rest| rest.len() == 6 && is_alphanumeric(rest));
    let glib = name.strip_prefix(".goutputstream-").is_some_and(is_alphanumeric);
    let text = extension(name).is_some_and(|end| matches!(end, "json" | "md" | "txt"));
    let named_so = !text && (name.starts_with(".tmp") || name.starts_with("tmp") || extension(name) == Some("tmp"));
    let perl = name.len() == 8 && is_alphanumeric(name) && !is_word(name);
    sed || glib || name == "4913" || named_so || perl || is_uuid(name)
}

/// What comes after the last dot.
pub fn extension(name: &str) -> Option<&str> {
    name.rsplit_once('.').map(|(_, end)| end)
}

fn is_alphanumeric(word: &str) -> bool {
    word.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// Whether a word is a number of a process or a time, or was drawn at random.
fn is_random(word: &str) -> bool {
    let number = word.len() >= 4 && word.bytes().all(|byte| byte.is_ascii_digit());
    let capitals = word.len() == 6 && word.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit());
    number || capitals || word.len() >= 6 && is_alphanumeric(word) && changes(word) >= 2
}

/// How often a word goes from small letters to capitals or digits and back: a word that people write seldom does.
fn changes(word: &str) -> usize {
    let class = |byte: &u8| (byte.is_ascii_digit(), byte.is_ascii_uppercase());
    let classes: Vec<_> = word.as_bytes().iter().map(class).collect();
    classes.windows(2).filter(|pair| pair[0] != pair[1]).count()
}

/// Whether people would write it so: `content`, `Content`, `CONTENT`, `content1`, `2026`.
fn is_word(word: &str) -> bool {
    let letters = word.trim_end_matches(|c: char| c.is_ascii_digit());
    let small = |text: &str| text.bytes().all(|byte| byte.is_ascii_lowercase());
    letters.bytes().all(|byte| byte.is_ascii_uppercase()) || letters.get(1..).is_some_and(small)
}

fn is_uuid(name: &str) -> bool {
    let lengths: Vec<usize> = name.split('-').map(str::len).collect();
    lengths == [8, 4, 4, 4, 12] && name.bytes().all(|byte| byte == b'-' || byte.is_ascii_hexdigit())
}

fn is_separator(c: char) -> bool {
    matches!(c, '.' | '~' | '#' | '-' | '_' | '%' | '@' | ',')
}

/// The parts of `name` that may be the real name: from a separator to a separator, the longest first.
fn parts(name: &str) -> impl Iterator<Item = &str> {
    const MOST: usize = 12;
    let cuts: Vec<usize> = name.match_indices(is_separator).map(|(at, _)| at).take(MOST).collect();
    let begins = std::iter::once(0).chain(cuts.clone().into_iter().map(|at| at + 1)).chain(cuts.clone());
    let ends: Vec<usize> = std::iter::once(name.len()).chain(cuts.into_iter().rev()).collect();
    let mut found: Vec<&str> = begins
        .flat_map(|begin| ends.iter().filter_map(move |end| name.get(begin..*end)).collect::<Vec<_>>())
        .filter(|part| !part.is_empty() && *part != name)
        .collect();
    found.sort_by_key(|part| std::cmp::Reverse(part.len()));
    found.into_iter()
}

#[cfg(test)]
mod tests;
