//! Paths of the tree as URIs: `acheron:/agents/self/README.md`.

/// The scheme of our URIs.
pub const SCHEME: &str = "acheron:";

/// The path that a URI names; a plain path is one, too.
pub fn path(uri: &str) -> Option<String> {
    let rest = match uri.strip_prefix(SCHEME) {
        Some(rest) => rest.strip_prefix("//").unwrap_or(rest),
        None if uri.starts_with('/') => return Some(uri.to_owned()),
        None => return None,
    };
    let decoded = decoded(rest)?;
    Some(if decoded.starts_with('/') { decoded } else { format!("/{decoded}") })
}

/// The URI of a path.
pub fn of(path: &str) -> String {
    let mut uri = SCHEME.to_owned();
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'_' | b'-' | b'~' => uri.push(byte.into()),
            byte => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    uri
}

fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
        match byte {
            b'%' => bytes.push(u8::try_from(digit(rest.next())? * 16 + digit(rest.next())?).ok()?),
            byte => bytes.push(byte),
        }
    }
    String::from_utf8(bytes).ok().filter(|text| !text.contains('\0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_and_uris_lead_to_each_other() {
        for plain in ["/", "/agents/self/README.md", "/projects/p/fs/a b%ü.txt"] {
            assert_eq!(path(&of(plain)).as_deref(), Some(plain));
        }
        assert_eq!(path("acheron:///agents").as_deref(), Some("/agents"));
        assert_eq!(path("acheron:agents").as_deref(), Some("/agents"));
        assert_eq!(path("/agents").as_deref(), Some("/agents"));
        for wrong in ["", "http://x/", "acheron:/%zz", "acheron:/%0", "acheron:/%00", "acheron:/%ff"] {
            assert_eq!(path(wrong), None, "{wrong}");
        }
    }
}
