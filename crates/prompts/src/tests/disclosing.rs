use expect_test::expect;
use serde_json::json;

use super::*;
use crate::manifest::Visibility;

/// `guide` without tools, `lab` whose tool lies in a child, `deep` in full inside a summary; keys with dots.
fn host() -> Prompt {
    let tool = |name: &str| json!([{"name": name, "description": "D."}]);
    prompt(
        json!({"params": {"P": text_field("v")}, "sections": [
            {"key": "guide", "title": "Guide", "params": "P", "default": {"v": "x"}, "body": "guide.md",
                "summary": "guide.short.md", "visibility": "summary", "children": [
                    {"key": "deep", "title": "Deep", "body": "deep.md", "children": [{"key": "grand", "title": "Grand"}]},
                    {"key": "off", "title": "Off", "enabled": false},
                    {"key": "shut", "title": "Shut", "body": "deep.md", "summary": "deep.short.md",
                        "visibility": "summary", "children": [{"key": "hidden", "title": "Hidden"}]},
                    {"key": "last", "title": "Last"},
                ]},
            {"key": "lab.tools", "title": "Lab", "body": "deep.md", "summary": "deep.short.md", "visibility": "summary",
                "children": [{"key": "bench", "title": "Bench", "tools": tool("s.x")}]},
            {"key": "open", "title": "Open", "tools": tool("s.y")},
        ]}),
        &[("guide.md", "Long $v"), ("guide.short.md", "Short $v"), ("deep.md", "Deep text"), ("deep.short.md", "Deep")],
    )
}

fn tools(prompt: &Prompt) -> String {
    prompt.render().unwrap().tools.iter().map(|tool| tool.name.clone()).collect::<Vec<String>>().join(" ")
}

fn keys(keys: &[&str]) -> Vec<String> {
    keys.iter().map(ToString::to_string).collect()
}

#[test]
fn rows_61_65_to_70_what_is_in_short_hides_what_is_below_and_says_how_to_see_it() {
    let prompt = host();
    expect![[r#"
        ## 1. Guide

        Short x

        ---
        [This section is shown in short (subsections: deep, off, shut, last): call `read_section` with key "guide" to read it.]

        ## 2. Lab

        Deep

        ---
        [This section is shown in short (subsections: bench): call `open_sections` with key "lab.tools" to open it together with its tools.]

        ## 3. Open"#]]
    .assert_eq(&shown(&prompt));
    assert_eq!(tools(&prompt), "s.y open_sections read_section");
    assert_eq!(prompt.render().unwrap().summarized, ["guide", "lab.tools"]);
}

#[test]
fn row_62_a_summary_that_is_not_there_cannot_be_chosen() {
    let mut prompt = host();
    let refused = prompt.set_visibility("open", Visibility::Summary).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "summary visibility requested for section `open` but no summary is defined (section open)"
    );
}

#[test]
fn row_64_the_session_is_stronger_than_the_section_both_ways() {
    let mut prompt = host();
    prompt.set_visibility("guide", Visibility::Full).unwrap();
    assert!(shown(&prompt).contains("Long x"));
    prompt.set_visibility("guide", Visibility::Summary).unwrap();
    assert!(shown(&prompt).contains("Short x"));
    assert_eq!(host().session.visibility.len(), 0);
}

#[test]
fn rows_71_74_opening_is_all_or_nothing_and_says_what_it_takes() {
    let mut prompt = host();
    let rows = [
        (keys(&[]), "at least one section key must be provided"),
        (keys(&["guide", "nowhere"]), "section `nowhere` does not exist in this prompt"),
        (keys(&["open"]), "section `open` is already expanded"),
        (keys(&["guide.off"]), "section `guide.off` is not there under these params (section guide/off)"),
    ];
    for (given, expected) in rows {
        assert_eq!(prompt.expansion(&given, "why").unwrap_err().to_string(), expected);
    }
    let expansion = prompt.expansion(&keys(&["guide.deep", "lab.tools"]), "why").unwrap();
    assert_eq!(expansion.to_string(), "visibility expansion required for sections: guide.deep, lab.tools. reason: why");
    assert_eq!(expansion.requested.keys().collect::<Vec<_>>(), ["guide", "lab.tools"]);
    prompt.apply(&expansion);
    assert_eq!(tools(&prompt), "s.x s.y read_section");
    assert!(prompt.expansion(&keys(&["lab.tools"]), "again").is_err());
}

#[test]
fn row_72_reading_shows_the_section_as_it_would_be_shown_and_changes_nothing() {
    let prompt = host();
    expect![[r#"
        ## 1. Guide

        Long x

        ### 1.1. Deep

        Deep text

        #### 1.1.1. Grand

        ### 1.3. Shut

        Deep

        ---
        [This section is shown in short (subsections: hidden): call `read_section` with key "guide.shut" to read it.]

        ### 1.4. Last"#]]
    .assert_eq(&prompt.read_section("guide").unwrap());
    assert_eq!(prompt.read_section("guide.deep").unwrap(), "### 1.1. Deep\n\nDeep text\n\n#### 1.1.1. Grand");
    assert_eq!(prompt.read_section("guide/deep").unwrap(), prompt.read_section("guide.deep").unwrap());
    assert_eq!(prompt.read_section("nope").unwrap_err().message, "section `nope` does not exist in this prompt");
    assert_eq!(prompt.read_section("open").unwrap_err().message, "section `open` is not summarized");
    assert_eq!(prompt.read_section("lab.tools").unwrap().lines().next(), Some("## 2. Lab"));
    assert_eq!(tools(&prompt), tools(&host()));
}

#[test]
fn a_dotted_name_that_may_be_two_sections_is_refused() {
    let sections = json!([
        {"key": "a", "title": "A", "children": [{"key": "b", "title": "B"}]}, {"key": "a.b", "title": "AB"},
    ]);
    let template = read(json!({"sections": sections}), &[]).unwrap();
    assert_eq!(template.nodes[template.find("a/b").unwrap()].section.title, "B");
    // The exact path is meant before a dotted one.
    assert_eq!(template.nodes[template.find("a.b").unwrap()].section.title, "AB");
    let deeper = json!([
        {"key": "a", "title": "A", "children": [{"key": "b.c", "title": "B"}]},
        {"key": "a.b", "title": "AB", "children": [{"key": "c", "title": "C"}]},
    ]);
    let template = read(json!({"sections": deeper}), &[]).unwrap();
    assert_eq!(template.find("a.b.c").unwrap_err().message, "section `a.b.c` may be any of a/b.c, a.b/c");
}

#[test]
fn a_condition_may_decide_about_the_summary() {
    let sections = json!([{"key": "a", "title": "A", "body": "a.md", "summary": "s.md",
        "visibility": {"summary_when": {"session": "brief"}}}]);
    let mut prompt = prompt(json!({"headings": "none", "sections": sections}), &[("a.md", "long"), ("s.md", "short")]);
    assert_eq!(shown(&prompt), "long");
    prompt.session.values.insert("brief".to_owned(), json!(true));
    assert!(shown(&prompt).starts_with("short"));
}
