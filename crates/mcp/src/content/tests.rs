use serde_json::json;

use super::*;

#[test]
fn text_is_the_result_and_blobs_are_files() {
    let result = read(&json!({"content": [
        {"type": "text", "text": "Here:"},
        {"type": "image", "mimeType": "image/png", "data": "YWJj"},
        {"type": "audio", "mimeType": "audio/wav", "data": "!"},
        {"type": "resource", "resource": {"uri": "demo://x/notes.md", "text": "hi"}},
        {"type": "resource_link", "uri": "demo://y", "name": "y"},
        {"type": "hologram"},
        7]}));
    let wanted = "Here:\n[files/image-1.png: image/png, 3 bytes]\n\
        [no file audio-2.wav: the server returned data that is not base64]\n\
        [files/notes.md: data, 2 bytes, of demo://x/notes.md]\n[resource y: demo://y]\n\
        [content of the type hologram, which is not known]\n[content of the type , which is not known]";
    assert_eq!(result.outcome, Ok(wanted.into()));
    let files: Vec<(&str, &[u8])> = result.files.iter().map(|file| (file.name.as_str(), &file.bytes[..])).collect();
    assert_eq!(files, [("image-1.png", &b"abc"[..]), ("notes.md", b"hi")]);
}

#[test]
fn structured_content_is_the_result_and_its_copy_is_not() {
    let result = read(&json!({"content": [{"type": "text", "text": "{\"a\":1}"}], "structuredContent": {"a": 1}}));
    assert_eq!(result.outcome, Ok(json!({"a": 1})));
}

#[test]
fn a_failure_is_the_sentence_of_the_server() {
    let failed = |content: Value| read(&json!({"isError": true, "content": content})).outcome.unwrap_err();
    assert_eq!(failed(json!([{"type": "text", "text": "no \u{1b}[31msuch\u{1b}[0m path"}])), "no such path");
    assert_eq!(failed(json!([])), "the tool failed and gave no reason");
    assert_eq!(failed(json!([{"type": "text", "text": "x".repeat(9000)}])).chars().count(), 4001);
}

#[test]
fn files_are_bounded_in_number_and_bytes() {
    let one = json!({"type": "image", "mimeType": "image/png", "data": "YWJj"});
    let many = read(&json!({"content": vec![one; 100]}));
    assert_eq!(many.files.len(), MOST_FILES);
    let large = json!({"type": "resource", "resource": {"uri": "x:/a.txt", "text": "x".repeat(MOST_FILE_BYTES - 1)}});
    let both = read(&json!({"content": [large.clone(), large]}));
    assert_eq!(both.files.len(), 1);
    assert!(both.outcome.unwrap().as_str().unwrap().contains("[no file for 16777215 bytes"));
}
