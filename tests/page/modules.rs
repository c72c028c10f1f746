//! The pure modules of the page, without a browser.

use std::path::Path;

use crate::common::command;

#[test]
fn texts_steps_differences_and_forms_are_what_the_page_makes_of_them() {
    let (top, copy) = (Path::new(env!("CARGO_MANIFEST_DIR")), tempfile::tempdir().unwrap());
    // Node takes them for modules only where a package says so.
    std::fs::write(copy.path().join("package.json"), r#"{"type":"module"}"#).unwrap();
    let copied = command(copy.path(), &["cp", "-r", top.join("web").to_str().unwrap(), "."]).status().unwrap();
    assert!(copied.success());
    let page = copy.path().join("web");
    let script = top.join("tests/page/modules.mjs");
    let output = command(copy.path(), &["node", script.to_str().unwrap(), page.to_str().unwrap()]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
