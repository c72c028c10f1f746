use serde_json::json;

use super::*;
use crate::services::prompts::test_prompts::lines;

fn put(folder: &std::path::Path, name: &str, text: &str) {
    let path = folder.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

#[test]
fn what_is_built_in_has_no_faults() {
    assert_eq!(lines(&Library::built_in().faults()), "");
}

#[test]
fn the_review_prompt_renders() {
    let params = json!({"Change": {"title": "A title", "diff": "+x", "why": "because", "files": ["a", "b"]}});
    let rendered = Library::built_in().render("review", "change", &params).unwrap();
    assert!(rendered.text.contains("### 2.2. What it touches\n\n- a\n- b\n"), "{}", rendered.text);
    assert!(!rendered.text.contains("attacker"));
    assert_eq!(rendered.output_type.as_deref(), Some("Review"));
    assert_eq!(rendered.summarized, ["look/behaviour", "search"]);
}

#[test]
fn a_folder_lies_over_what_is_built_in_and_a_faulty_edit_keeps_the_last_good_one() {
    let folder = tempfile::tempdir().unwrap();
    put(folder.path(), "say/hello.md", "Hello $name");
    put(folder.path(), "say/README.md", "for people");
    let library = Library::open(Some(folder.path()));
    assert_eq!(lines(&library.faults()), "");
    let hello = || library.render("say", "hello", &json!({"name": "you"})).map(|rendered| rendered.text);
    assert_eq!(hello().unwrap(), "Hello you");
    put(folder.path(), "say/hello.md", "Good day, $name");
    assert_eq!(library.reload(), []);
    assert_eq!(hello().unwrap(), "Good day, you");
    put(folder.path(), "say/hello.md", "---\nphase_id: x\n---\n\nGood day, $5");
    let faults = library.reload();
    assert!(faults[0].to_string().contains("say/hello.md:5:11: malformed placeholder"), "{}", faults[0]);
    assert_eq!(hello().unwrap(), "Good day, you");
    assert_eq!(library.faults(), faults);
    std::fs::remove_file(folder.path().join("say/hello.md")).unwrap();
    library.reload();
    assert_eq!(hello().unwrap_err().message, "there is no prompt `say/hello`");
}

#[test]
fn a_faulty_prompt_in_the_folder_leaves_the_built_in_one_in_force() {
    let folder = tempfile::tempdir().unwrap();
    put(folder.path(), "review/change/prompt.json", "{");
    let library = Library::open(Some(folder.path()));
    assert_eq!(library.faults().len(), 1);
    let known = library.list().into_iter().find(|(template, _)| template.id() == "review/change");
    assert_eq!(known.map(|(_, origin)| origin), Some(Origin::BuiltIn));
}

#[test]
fn strange_files_are_faults_and_links_are_not_followed() {
    let folder = tempfile::tempdir().unwrap();
    put(folder.path(), "loose.md", "x");
    put(folder.path(), "a/b.pdf", "x");
    put(folder.path(), "a/Big Key.md", "x");
    put(folder.path(), "a/twice.md", "x");
    put(folder.path(), "a/twice.txt", "x");
    put(folder.path(), "a/empty/role.md", "x");
    std::fs::write(folder.path().join("a/bytes.md"), [b'a', b'\n', b'b', 0xff]).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", folder.path().join("a/passwd.md")).unwrap();
    let root = folder.path().to_string_lossy().into_owned();
    let faults: Vec<String> = Library::open(Some(folder.path()))
        .faults()
        .iter()
        .map(|fault| fault.to_string().replace(&root, "p").chars().take(66).collect())
        .collect();
    assert_eq!(
        faults,
        [
            "p/loose.md:1:1: not a prompt: one is <ns>/<key>/prompt.json with i",
            "p/a/Big Key.md:1:1: prompt key `Big Key` must match ^[a-z0-9][a-z0",
            "p/a/bytes.md:2:2: the text is not UTF-8",
            "p/a/empty/prompt.json:1:1: there is no prompt.json",
            "p/a/twice.txt:1:1: prompt `a/twice` is there twice",
        ]
    );
}

#[derive(schemars::JsonSchema, serde::Serialize)]
struct Greeting {
    name: String,
}

#[derive(schemars::JsonSchema)]
#[allow(dead_code)]
struct Other {
    names: String,
}

#[test]
fn a_rust_type_is_held_against_a_file() {
    let folder = tempfile::tempdir().unwrap();
    put(folder.path(), "say/hello.md", "\nHello $name");
    let library = Library::open(Some(folder.path()));
    library.expect::<Greeting>("say", "hello").unwrap();
    assert_eq!(library.text("say", "hello", &Greeting { name: "you".to_owned() }).unwrap(), "Hello you");
    let refused = library.expect::<Other>("say", "hello").unwrap_err();
    assert!(refused.message.starts_with("say/hello:2:7: template references unknown placeholder"), "{refused}");
}

#[test]
fn the_recall_dialect_is_chosen_by_front_matter() {
    let folder = tempfile::tempdir().unwrap();
    let text = "---\ndialect: recall\n---\nA\n\n{{IF_INCLUDE_RECALL}}B{{/IF_INCLUDE_RECALL}}\n\n__MEMORY_ROOT__ $5";
    put(folder.path(), "runtime/default.md", text);
    let library = Library::open(Some(folder.path()));
    let show = |held: bool| {
        let params = json!({"include_recall": held, "memory_root": "{{IF_INCLUDE_RECALL}}"});
        library.render("runtime", "default", &params).unwrap().text
    };
    assert_eq!(show(true), "A\n\nB\n\n{{IF_INCLUDE_RECALL}} $5");
    assert_eq!(show(false), "A\n\n{{IF_INCLUDE_RECALL}} $5");
}

#[test]
fn overrides_apply_to_the_prompts_of_the_host_itself() {
    let (library, place) = (Library::built_in(), tempfile::tempdir().unwrap());
    let params = json!({"Protocol": {"tools": [], "output": null, "typed": false, "equipped": false}});
    let text = || library.render("evaluate", "protocol", &params).unwrap().text;
    let before = text();
    let overrides = library.overrides_in(place.path()).unwrap();
    assert_eq!(text(), before, "none yet");
    let change =
        serde_json::from_value(json!({"target": "section", "path": "free", "body": "Answer in verse."})).unwrap();
    let template = library.get("evaluate", "protocol").unwrap();
    overrides.store(&crate::service::WithoutCall, &template, "latest", &change).unwrap();
    assert!(text() != before && text().contains("Answer in verse."), "{}", text());
}
