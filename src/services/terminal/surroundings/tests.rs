use super::*;

#[test]
fn an_agent_finds_its_own_subtree_and_its_projects_and_no_other() {
    let project = |id: &str, at: &str, read_only| ProjectDir {
        project: id.into(),
        at: at.into(),
        source: Path::new("/srv").join(id),
        read_only,
        id: None,
        served_by: Some(ServedBy::Kernel),
    };
    let world = Surroundings {
        agent: "charon".into(),
        mount: Some("/mnt/a".into()),
        shared: vec!["global".into()],
        projects: vec![project("here", "/", true), project("site", "/docs", false)],
        ..Surroundings::default()
    };
    let plan = world.plan(vec!["true".into()]);
    plan.check().unwrap();
    let mut shown = String::new();
    for bind in plan.ordered() {
        let mode = if bind.read_only { "ro" } else { "rw" };
        shown += &format!("{} {} {mode}\n", bind.target.display(), bind.source.display());
    }
    expect_test::expect![[r"
            /global /mnt/a/global rw
            /agents/charon /mnt/a/agents/charon rw
            /projects/here/fs /srv/here ro
            /projects/site/fs/docs /srv/site rw
        "]]
    .assert_eq(&shown);
    assert_eq!(plan.cwd, Path::new("/projects/here/fs"));
    assert_eq!(plan.links, [Link { path: "/agents/self".into(), to: "charon".into() }]);
}

#[test]
fn without_a_mount_and_projects_there_is_only_a_home() {
    let plan = Surroundings { agent: "charon".into(), ..Surroundings::default() }.plan(vec!["true".into()]);
    assert_eq!((plan.binds.len(), plan.cwd.as_path()), (0, Path::new("/home")));
}
