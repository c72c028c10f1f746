use serde_json::json;

use super::*;

fn values() -> ProfileValues {
    let text = |text: &str| text.to_owned();
    ProfileValues { gateway: text("http://127.0.0.1:4141"), key: text("k"), model: text("m"), home: text("/root") }
}

#[test]
fn the_users_arguments_come_last_and_win() {
    let profile = ProgramProfile {
        args: vec!["--quiet".into()],
        unless_given: vec![vec!["-m".into(), "{model}".into()], vec!["--yes".into()]],
        ..ProgramProfile::default()
    };
    let given = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    assert_eq!(profile.arguments(&given(&["-p", "hi"]), &values()).join(" "), "--quiet -m m --yes -p hi");
    assert_eq!(profile.arguments(&given(&["-m", "x", "--yes=no"]), &values()).join(" "), "--quiet -m x --yes=no");
}

#[test]
fn settings_are_added_and_those_of_the_user_stay() {
    let home = tempfile::tempdir().unwrap();
    let settings = json!({ "security": { "auth": { "type": "key" } }, "url": "{gateway}/v1" });
    let profile = ProgramProfile { settings: [(".x/settings.json".to_owned(), settings)].into(), ..Default::default() };
    let read =
        || -> Value { serde_json::from_slice(&std::fs::read(home.path().join(".x/settings.json")).unwrap()).unwrap() };
    profile.settle(home.path(), &values()).unwrap();
    assert_eq!(read(), json!({ "security": { "auth": { "type": "key" } }, "url": "http://127.0.0.1:4141/v1" }));
    std::fs::write(home.path().join(".x/settings.json"), r#"{"url": "mine", "theme": "dark"}"#).unwrap();
    profile.settle(home.path(), &values()).unwrap();
    assert_eq!(read(), json!({ "security": { "auth": { "type": "key" } }, "url": "mine", "theme": "dark" }));
    std::fs::write(home.path().join(".x/settings.json"), "{ // no JSON\n}").unwrap();
    let refused = profile.settle(home.path(), &values()).unwrap_err().message;
    assert!(refused.starts_with(".x/settings.json in the program's home is not JSON"), "{refused}");
}

#[test]
fn a_link_in_the_home_leads_nowhere() {
    let (home, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    std::os::unix::fs::symlink(outside.path(), home.path().join(".x")).unwrap();
    let profile =
        ProgramProfile { settings: [(".x/s.json".to_owned(), json!({ "a": 1 }))].into(), ..Default::default() };
    assert!(profile.settle(home.path(), &values()).is_err());
    assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 0);
}
