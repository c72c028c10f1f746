use super::*;
use crate::policy::Rule;

#[test]
fn a_change_needs_a_bind_that_can_be_written_and_a_rule_that_allows_it() {
    let text = r#"{"agents": {"a": {}}, "projects": {
            "p": {"binds": {"/": {"path": "/p"}, "/out": {"path": "/out", "read_only": false}}},
            "q": {"binds": {"/q": {"path": "/q", "read_only": false}}}, "r": {"binds": {"/": {"path": "/r"}}}}}"#;
    let spec = Spec::check(text).unwrap();
    let own = [Rule::deny(&[Action::Write], "/projects/p/fs/out/kept/**")];
    let policy = Policy::default().agent("a", &["p", "q", "r"].map(str::to_owned), &own).unwrap();
    let said = |principal: &Principal, path: &str| match writable_by(&spec, &policy, principal, path) {
        Ok(()) => "yes".to_owned(),
        Err(error) => error.code.name().to_owned(),
    };
    let agent = Principal::Agent("a".to_owned());
    for (path, expected) in [
        ("/projects/p/fs", "read_only"),
        ("/projects/p/fs/x", "read_only"),
        ("/projects/p/fs/outer", "read_only"),
        ("/projects/p/fs/out", "yes"),
        ("/projects/p/fs/out/x", "yes"),
        ("/projects/p/fs/out/kept/x", "forbidden"),
        ("/projects/p/name", "yes"),
        ("/projects/p/fsx", "yes"),
        ("/projects/q/fs", "read_only"),
        ("/projects/q/fs/q/x", "yes"),
        ("/projects/r", "read_only"),
        ("/projects/r/name", "read_only"),
        ("/projects/none/x", "not_found"),
        ("/agents/a", "invalid_payload"),
    ] {
        assert_eq!(said(&agent, path), expected, "{path}");
    }
    assert_eq!(said(&Principal::Agent("b".to_owned()), "/projects/p/fs/out"), "forbidden");
    assert_eq!(said(&Principal::Operator, "/projects/p/fs/out/kept/x"), "yes");
    assert_eq!(said(&Principal::Operator, "/projects/r/fs/x"), "read_only", "through a service a bind holds for all");
}
