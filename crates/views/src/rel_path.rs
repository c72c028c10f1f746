//! A path below a root, which need not be text. In JSON it is a string, or an object with its bytes where it is no text.

use std::ffi::OsString;
use std::fmt;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(from = "WrittenPath", into = "WrittenPath")]
pub struct RelPath(pub PathBuf);

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum WrittenPath {
    Text(String),
    Bytes { bytes: Vec<u8> },
}

impl From<WrittenPath> for RelPath {
    fn from(written: WrittenPath) -> RelPath {
        match written {
            WrittenPath::Text(text) => RelPath(text.into()),
            WrittenPath::Bytes { bytes } => RelPath(OsString::from_vec(bytes).into()),
        }
    }
}

impl From<RelPath> for WrittenPath {
    fn from(path: RelPath) -> WrittenPath {
        match path.0.into_os_string().into_string() {
            Ok(text) => WrittenPath::Text(text),
            Err(raw) => WrittenPath::Bytes { bytes: raw.into_vec() },
        }
    }
}

impl RelPath {
    pub fn new(path: impl Into<PathBuf>) -> RelPath {
        RelPath(path.into())
    }

    pub fn bytes(&self) -> &[u8] {
        self.0.as_os_str().as_bytes()
    }

    /// Whether this is `above`, or lies below it.
    pub fn is_below(&self, above: &Path) -> bool {
        self.0.starts_with(above)
    }
}

impl AsRef<Path> for RelPath {
    fn as_ref(&self) -> &Path {
        &self.0
    }
}

/// As a person reads it, and names it: a name that is no text is shown in the quotes and escapes of git.
impl fmt::Display for RelPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.to_str() {
            Some(text) => f.write_str(text),
            None => f.write_str(&String::from_utf8_lossy(&quoted_name(b"", self.bytes()))),
        }
    }
}

/// A name as git writes it in a patch: as it is, or in quotes with escapes if it has characters that would break a line.
pub fn quoted_name(prefix: &[u8], name: &[u8]) -> Vec<u8> {
    let odd = |byte: &u8| *byte < 0x20 || *byte >= 0x7f || matches!(byte, b'"' | b'\\');
    if !name.iter().any(odd) {
        return [prefix, name].concat();
    }
    let mut quoted = vec![b'"'];
    quoted.extend_from_slice(prefix);
    for byte in name {
        match byte {
            b'"' | b'\\' => quoted.extend([b'\\', *byte]),
            b'\n' => quoted.extend(b"\\n"),
            b'\t' => quoted.extend(b"\\t"),
            b'\r' => quoted.extend(b"\\r"),
            byte if odd(byte) => quoted.extend(format!("\\{byte:03o}").into_bytes()),
            byte => quoted.push(*byte),
        }
    }
    quoted.push(b'"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_no_text_survive_json_and_are_shown_escaped() {
        let odd = RelPath::new(OsString::from_vec(b"a\xff/b\n".to_vec()));
        let json = serde_json::to_string(&[odd.clone(), RelPath::new("b\nc")]).unwrap();
        assert_eq!(json, r#"[{"bytes":[97,255,47,98,10]},"b\nc"]"#);
        assert_eq!(serde_json::from_str::<Vec<RelPath>>(&json).unwrap()[0], odd);
        assert_eq!(odd.to_string(), r#""a\377/b\n""#);
        assert_eq!(quoted_name(b"a/", b"plain name"), b"a/plain name");
        assert_eq!(quoted_name(b"a/", b"new\nline"), b"\"a/new\\nline\"");
    }
}
