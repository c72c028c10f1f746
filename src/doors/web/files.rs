//! The files of the page, from the directory `web` of the repository.

use include_dir::{Dir, include_dir};
use sha2::{Digest as _, Sha256};

/// The page as it is embedded.
pub static PAGE: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/web");

/// A file of the page.
pub struct EmbeddedFile {
    pub kind: &'static str,
    /// Differs when the bytes do.
    pub tag: String,
    pub bytes: &'static [u8],
}

/// The file of this name.
pub fn find(name: &str) -> Option<EmbeddedFile> {
    let kind = match name.rsplit_once('.')?.1 {
        "html" => "text/html; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "svg" => "image/svg+xml",
        "webmanifest" => "application/manifest+json",
        _ => return None,
    };
    let bytes = PAGE.get_file(name)?.contents();
    let hash: String = Sha256::digest(bytes).iter().take(12).map(|byte| format!("{byte:02x}")).collect();
    Some(EmbeddedFile { kind, tag: format!("\"{hash}\""), bytes })
}
