use super::*;
use acheron_base::host_dir::Id;

fn source(path: &str) -> Source {
    Source { path: path.into(), id: Id { device: 0, inode: 0 } }
}

#[test]
fn an_agent_searches_what_its_projects_bind() {
    let text = r#"{"agents": {"a": {}}, "projects": {"p": {"binds": {
            "/": {"path": "."}, "/lib": {"path": "/opt/lib"}}}, "q": {"binds": {"/": {"path": "/q"}}}}}"#;
    let spec = Spec::check(text).unwrap();
    let shown = |project: &str| -> Vec<String> {
        bound(&spec, &[project.to_owned()], &|id, at| Some(source(&format!("/{id}{at}"))))
            .iter()
            .map(|root| format!("{} {}", root.path_of(""), root.source.display()))
            .collect()
    };
    assert_eq!(shown("p"), ["/projects/p/fs /p/", "/projects/p/fs/lib /p/lib"]);
    assert_eq!(shown("nobody"), [""; 0]);
}

#[test]
fn a_path_leads_to_the_roots_that_it_means() {
    let root = |project: &str, at: &str| ProjectDir {
        project: project.to_owned(),
        at: at.to_owned(),
        source: "/x".into(),
        id: None,
        read_only: true,
        served_by: None,
    };
    let roots = [root("a", "/"), root("a", "/lib"), root("b", "/")];
    let check = |path: Option<&str>, expected: &[&str]| {
        let found = match scopes(&roots, path) {
            Ok(scopes) => scopes.iter().map(|(root, rel)| format!("{} {rel}", root.path_of(""))).collect(),
            Err(err) => vec![err.message],
        };
        assert_eq!(found, expected, "{path:?}");
    };
    let all = ["/projects/a/fs ", "/projects/a/fs/lib ", "/projects/b/fs "];
    check(None, &all);
    check(Some("."), &all);
    check(Some("/"), &all);
    check(Some("/projects"), &all);
    check(Some("projects/a"), &all[..2]);
    check(Some("/projects/a/fs/"), &all[..2]);
    check(Some("/projects/b/fs"), &all[2..]);
    check(Some("/projects/a/fs/src"), &["/projects/a/fs src"]);
    check(Some("/projects/a/fs/lib/x.rs"), &["/projects/a/fs/lib x.rs"]);
    check(Some("/projects/a/fs/library"), &["/projects/a/fs library"]);
    check(Some("src/../src"), &["/projects/a/fs src", "/projects/a/fs/lib src", "/projects/b/fs src"]);
    let places = "what can be searched is /projects/a/fs, /projects/a/fs/lib, /projects/b/fs";
    check(Some("/etc"), &[&format!("/etc is not in this agent's projects; {places}")]);
    check(Some("/projects/c/fs"), &[&format!("/projects/c/fs is not in this agent's projects; {places}")]);
    check(
        Some("/projects/a/fs/../../../etc"),
        &[&format!("/projects/a/fs/../../../etc is not in this agent's projects; {places}")],
    );
    assert!(scopes(&[], None).is_err());
}
