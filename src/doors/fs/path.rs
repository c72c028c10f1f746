//! The path of the tree in the path of a request. Pure.
//!
//! Each part between slashes is one name. What could mean another name to somebody else is refused: `.` and `..`, an encoded
//! slash, NUL, and what is not UTF-8.

use acheron_base::{Error, Result};

/// The path in `/fs/<path>`, without a slash at its end.
pub fn parse(path: &str) -> Result<String> {
    let rest = path.strip_prefix("/fs").unwrap_or(path);
    let mut names = Vec::new();
    for part in rest.split('/').filter(|part| !part.is_empty()) {
        let name = decode(part)?;
        match name.as_str() {
            "." | ".." => return Err(Error::invalid("a path has no `.` and no `..` in it")),
            name if name.contains(['/', '\0']) => {
                return Err(Error::invalid("a name has no slash and no NUL in it, encoded or not"));
            }
            _ => names.push(name),
        }
    }
    Ok(format!("/{}", names.join("/")))
}

/// The value of a key in a query.
pub fn query(query: Option<&str>, key: &str) -> Result<Option<String>> {
    let mut found = query.unwrap_or_default().split('&').filter_map(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        (name == key).then_some(value)
    });
    let value = found.next().map(decode).transpose()?;
    match found.next() {
        Some(_) => Err(Error::invalid(format!("`{key}` is given twice"))),
        None => Ok(value),
    }
}

fn decode(part: &str) -> Result<String> {
    let bad = || Error::invalid("a `%` in a path is followed by two hexadecimal digits");
    let (mut bytes, mut rest) = (Vec::with_capacity(part.len()), part.bytes());
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || char::from(rest.next()?).to_digit(16);
        let (high, low) = (digit().ok_or_else(bad)?, digit().ok_or_else(bad)?);
        bytes.push((high * 16 + low) as u8);
    }
    String::from_utf8(bytes).map_err(|_| Error::invalid("a path is UTF-8"))
}

/// A path of the tree as the path of a request.
pub fn url(path: &str) -> String {
    let mut url = "/fs".to_owned();
    for byte in path.bytes() {
        match byte {
            b'/' | b'-' | b'.' | b'_' | b'~' => url.push(char::from(byte)),
            byte if byte.is_ascii_alphanumeric() => url.push(char::from(byte)),
            byte => url.push_str(&format!("%{byte:02X}")),
        }
    }
    url
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_means_one_thing_or_is_refused() {
        for (path, expected) in [
            ("/fs", Some("/")),
            ("/fs/", Some("/")),
            ("/fs//agents//self/", Some("/agents/self")),
            ("/fs/a%20b/%C3%A4", Some("/a b/ä")),
            ("/fs/a+b", Some("/a+b")),
            ("/fs/%25", Some("/%")),
            ("/fs/..", None),
            ("/fs/a/%2e%2E/b", None),
            ("/fs/.", None),
            ("/fs/a%2fb", None),
            ("/fs/a%00b", None),
            ("/fs/%ff", None),
            ("/fs/%2", None),
            ("/fs/%zz", None),
        ] {
            assert_eq!(parse(path).ok().as_deref(), expected, "{path}");
        }
        assert_eq!(parse(&url("/a b/ä%?#")).unwrap(), "/a b/ä%?#");
        assert_eq!(query(Some("wait=5&x"), "wait").unwrap().as_deref(), Some("5"));
        assert_eq!(query(Some("x"), "x").unwrap().as_deref(), Some(""));
        assert!(query(Some("wait=5&wait=6"), "wait").is_err());
    }
}
