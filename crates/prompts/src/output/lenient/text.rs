//! The texts of damaged JSON: where one ends, what stands in it, and what is only a comment.

/// How far is looked ahead to tell the end of a string from a quote inside it.
const AHEAD: usize = 512;

/// A text that was read.
pub(super) struct FoundText {
    pub text: String,
    pub length: usize,
    pub repairs: Vec<&'static str>,
}

/// The quote that closes what `open` opens.
pub(super) fn closing(open: char) -> Option<char> {
    match open {
        '"' | '\'' => Some(open),
        '“' => Some('”'),
        '‘' => Some('’'),
        _ => None,
    }
}

/// The length of a comment with which a text begins.
pub(super) fn comment(text: &str) -> Option<usize> {
    if text.starts_with("//") || text.starts_with('#') {
        return Some(text.find('\n').unwrap_or(text.len()));
    }
    let inner = text.strip_prefix("/*")?;
    Some(inner.find("*/").map_or(text.len(), |end| end + 4))
}

/// The string with which a text begins; none if it never ends.
pub(super) fn string(text: &str, in_list: bool) -> Option<FoundText> {
    let open = text.chars().next()?;
    let close = closing(open)?;
    let mut found = FoundText { text: String::new(), length: 0, repairs: Vec::new() };
    if open != '"' {
        found.note("a string in other quotes");
    }
    let mut rest = text.char_indices().skip(1);
    while let Some((at, c)) = rest.next() {
        match c {
            '\\' => {
                let (length, c) = escape(&text[at..])?;
                match c {
                    Some(c) => found.text.push(c),
                    None => {
                        found.text += &text[at..at + length];
                        found.note("a backslash that escapes nothing");
                    }
                }
                // The escape has `length - 1` further characters, all of them one byte long but perhaps the last.
                while rest.clone().next().is_some_and(|(next, _)| next < at + length) {
                    rest.next();
                }
            }
            _ if c == close => {
                let after = at + c.len_utf8();
                if ends(&text[after..], in_list) {
                    found.length = after;
                    return Some(found);
                }
                found.text.push(c);
                found.note("a quote inside a string");
            }
            '\n' | '\r' => {
                found.text.push(c);
                found.note("a line break inside a string");
            }
            c if c < ' ' => {
                found.text.push(c);
                found.note("a control character inside a string");
            }
            c => found.text.push(c),
        }
    }
    None
}

impl FoundText {
    fn note(&mut self, what: &'static str) {
        if !self.repairs.contains(&what) {
            self.repairs.push(what);
        }
    }
}

/// Whether a string can end before `rest`: the end of the text, a bracket, a comma and what must follow it, or the next
/// field without a comma.
fn ends(rest: &str, in_list: bool) -> bool {
    let rest = bounded(rest);
    let mut after = rest.trim_start();
    while let Some(length) = comment(after) {
        after = after[length..].trim_start();
    }
    let Some(next) = after.chars().next() else { return true };
    match next {
        '}' | ']' => true,
        ',' => {
            let mut after = after[1..].trim_start();
            while let Some(length) = comment(after) {
                after = after[length..].trim_start();
            }
            let begins = after.chars().next();
            match begins {
                None | Some('}' | ']') => true,
                Some(_) if in_list => true,
                Some(_) => key_follows(after),
            }
        }
        quote if in_list => closing(quote).is_some() && rest.starts_with(char::is_whitespace),
        _ => key_follows(after),
    }
}

/// Whether a key and its colon come next.
pub(super) fn key_follows(text: &str) -> bool {
    let text = bounded(text);
    let Some(first) = text.chars().next() else { return false };
    match closing(first) {
        Some(close) => {
            // The text may end in the key.
            let Some(end) = key_ends(text) else { return text.len() < AHEAD - 8 && !text.contains('\n') };
            !text[..end].contains('\n') && text[end + close.len_utf8()..].trim_start().starts_with(':')
        }
        None if first.is_alphabetic() || first == '_' || first == '$' => {
            let end = text.find(|c: char| !(c.is_alphanumeric() || "_$-".contains(c))).unwrap_or(text.len());
            text[end..].trim_start().starts_with(':')
        }
        None => false,
    }
}

/// The place of the quote that closes a key: the first one.
pub(super) fn key_ends(text: &str) -> Option<usize> {
    let open = text.chars().next()?;
    let close = closing(open)?;
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if c == close => return Some(at),
            _ => (),
        }
    }
    None
}

/// A key without its escapes.
pub(super) fn unescaped(inner: &str) -> Option<String> {
    let quoted = |inner: &str| serde_json::from_str(&format!("\"{inner}\"")).ok();
    quoted(inner).or_else(|| quoted(&inner.replace('"', "\\\"")))
}

/// The length of an escape and what it stands for; no character if it stands for nothing.
fn escape(text: &str) -> Option<(usize, Option<char>)> {
    let kind = text.chars().nth(1)?;
    let plain = |c| Some((2, Some(c)));
    match kind {
        '"' | '\\' | '/' | '\'' => plain(kind),
        'n' => plain('\n'),
        't' => plain('\t'),
        'r' => plain('\r'),
        'b' => plain('\u{8}'),
        'f' => plain('\u{c}'),
        'u' => Some(unicode(text)),
        '\n' => Some((2, None)),
        other => Some((1 + other.len_utf8(), None)),
    }
}

fn unicode(text: &str) -> (usize, Option<char>) {
    let unit = |from: usize| text.get(from..from + 4).and_then(|digits| u32::from_str_radix(digits, 16).ok());
    match unit(2) {
        Some(high @ 0xd800..=0xdbff) if text.get(6..8) == Some("\\u") => match unit(8) {
            Some(low @ 0xdc00..=0xdfff) => (12, char::from_u32(0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00))),
            _ => (2, None),
        },
        Some(unit) => match char::from_u32(unit) {
            Some(c) => (6, Some(c)),
            None => (2, None),
        },
        None => (2, None),
    }
}

/// The length of a number in groups of three with which a text begins: `1,234.5`.
pub(super) fn grouped(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let digits =
        |from: usize| bytes.get(from..).unwrap_or_default().iter().take_while(|byte| byte.is_ascii_digit()).count();
    let mut at = usize::from(bytes.first().is_some_and(|sign| b"+-".contains(sign)));
    let first = digits(at);
    if !(1..=3).contains(&first) {
        return None;
    }
    at += first;
    let mut groups = 0;
    while bytes.get(at) == Some(&b',') && digits(at + 1) == 3 {
        (at, groups) = (at + 4, groups + 1);
    }
    if bytes.get(at) == Some(&b'.') && digits(at + 1) > 0 {
        at += 1 + digits(at + 1);
    }
    (groups > 0).then_some(at)
}

/// A number as JSON writes it: `+5`, `.5`, `5.` and `007` are not.
pub(super) fn usual_number(written: &str) -> Option<String> {
    let (sign, bare) = match written.strip_prefix('-') {
        Some(bare) => ("-", bare),
        None => ("", written.strip_prefix('+').unwrap_or(written)),
    };
    let bare = bare.strip_suffix('.').unwrap_or(bare);
    let bare = if bare.starts_with('.') { format!("0{bare}") } else { bare.to_owned() };
    // With zeros in front it may be a code, or octal.
    let zeros = bare.len() > 1 && bare.starts_with('0') && !bare.starts_with("0.");
    (!bare.is_empty() && !zeros).then(|| format!("{sign}{bare}"))
}

fn bounded(text: &str) -> &str {
    match text.len() {
        0..=AHEAD => text,
        _ => &text[..text.floor_char_boundary(AHEAD)],
    }
}
