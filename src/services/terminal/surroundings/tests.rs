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

#[test]
fn a_proxy_comes_with_its_port_and_its_variables_and_goes_with_them() {
    let around =
        Surroundings { agent: "charon".into(), hosts: vec!["a.example:443".into()], ..Surroundings::default() };
    let mut plan = around.plan(vec!["true".into()]);
    assert_eq!((plan.listen.as_slice(), plan.network), (&[PROXY_PORT][..], false));
    for name in ["HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy"] {
        assert_eq!(plan.env[name], "http://127.0.0.1:4142");
    }
    assert_eq!(plan.env["NO_PROXY"], "127.0.0.1,localhost,::1");
    remove_proxy(&mut plan);
    assert_eq!((plan.listen.len(), plan.env.len()), (0, 0));
    // Whoever shares the network of the machine needs none.
    let shared = Surroundings { network: true, ..around }.plan(vec!["true".into()]);
    assert!(shared.listen.is_empty() && shared.env.is_empty());
}
