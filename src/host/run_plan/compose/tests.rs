use super::*;
use acheron_sandbox::{PathRule, Visibility};

#[test]
fn a_bind_is_read_from_the_command_line() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().canonicalize().unwrap();
    let text = path.display().to_string();
    let parse = |text: String| text.parse::<ExtraBind>();
    let here = |target: &str, read_only| ExtraBind { source: path.clone(), target: target.into(), read_only };
    assert_eq!(parse(text.clone()).unwrap(), here(&text, false));
    assert_eq!(parse(format!("{text}:ro")).unwrap(), here(&text, true));
    assert_eq!(parse(format!("{text}:/data")).unwrap(), here("/data", false));
    assert_eq!(parse(format!("{text}:/data:ro")).unwrap(), here("/data", true));
    for wrong in ["", ":/data", "/nowhere/at/all", &format!("{text}:data"), &format!("{text}:")] {
        assert!(parse(wrong.to_owned()).is_err(), "{wrong}");
    }
}

#[test]
fn a_project_keeps_its_rules_under_its_own_name() {
    let mut plan = Plan::new("claude", ["true"]).bind("/srv/p", "/projects/p/fs", false);
    plan.cwd = "/projects/p/fs".into();
    let rule = PathRule {
        path: "/projects/p/fs/.git/hooks".into(),
        bind: "/projects/p/fs".into(),
        show: Visibility::ReadOnly,
    };
    plan.path_rules.push(rule);
    assert_eq!(show_as_outside(&mut plan, "p", Path::new("/srv/p")), Path::new("/srv/p"));
    assert_eq!(plan.binds[0].target, Path::new("/srv/p"));
    assert_eq!(plan.path_rules[0].path, Path::new("/srv/p/.git/hooks"));
    assert_eq!(plan.path_rules[0].bind, Path::new("/srv/p"));
    assert_eq!(plan.cwd, Path::new("/srv/p"));
    assert_eq!(
        (plan.links[0].path.as_path(), plan.links[0].to.as_path()),
        (Path::new("/projects/p/fs"), Path::new("/srv/p"))
    );
    // A name that means something else inside is not used.
    let mut plan = Plan::new("claude", ["true"]).bind("/usr/src/p", "/projects/p/fs", false);
    assert_eq!(show_as_outside(&mut plan, "p", Path::new("/usr/src/p")), Path::new("/projects/p/fs"));
    plan.check().unwrap();
}

#[test]
fn places_for_what_lies_in_the_home_are_made_there() {
    let home = tempfile::tempdir().unwrap();
    let tool = tempfile::tempdir().unwrap();
    let mut plan = Plan::new("claude", ["true"]).bind(tool.path(), "/root/.nvm/v22", true);
    let more = Additions { home: Some((home.path().to_owned(), "/root".into())), ..Additions::default() };
    add(&mut plan, &more).unwrap();
    assert!(home.path().join(".nvm/v22").is_dir());
    assert_eq!(plan.env["HOME"], "/root");
    // What the program put in its place leads nowhere.
    let outside = tempfile::tempdir().unwrap();
    std::fs::remove_dir_all(home.path().join(".nvm")).unwrap();
    std::os::unix::fs::symlink(outside.path(), home.path().join(".nvm")).unwrap();
    assert!(add(&mut plan, &more).is_err());
    assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 0);
}
