//! Searching a project from a shell.

use expect_test::expect;

use crate::test_host::TestHost;

#[test]
fn a_search_answers_where_it_was_asked_and_in_the_directory() {
    TestHost::new().check(
        r#"
        cd agents/self/search_code
        echo '{"op":"search","arguments":{"query":"fn main"}}' > control/invoke.json; cat result.json | jq .ok
        jq -c '.result.matches[]' result.json
        echo '{"op":"fly"}' > control/invoke.json
        jq -r .error.code status.json
        jq -c '[.ok, .error.message]' result.json
        exec 3<>control/search.json; echo '{"query":"TODO","context":1}' >&3; jq -c '[.job_id, .result.matches[0].before, .result.matches[0].after]' <&3; exec 3>&-
        echo '{"op":"search","arguments":{"query":"x"},"correlation_id":"mine"}' > control/invoke.json; jq -r .state ../jobs/by/mine/status.json
        echo '{"qurey":"x"}' > control/search.json
        jq -r .error.message status.json
        echo '{"query":"(","regex":true}' > control/search.json; jq -r .error.message result.json
        echo '{"query":"root","path":"/etc"}' > control/search.json; jq -c .error result.json
        cat control/search.json
        "#,
        expect![[r#"
            true
            {"path":"/projects/here/fs/main.rs","line":1,"column":1,"text":"fn main() {","before":[],"after":[]}
            unknown_operation
            [false,"search_code has no operation `fly`; operations are search"]
            ["JOB",["fn main() {"],["}"]]
            done
            search: unknown key `qurey`; did you mean query?
            query is not a regular expression: unclosed group; without "regex": true it is taken literally
            {"code":"forbidden","message":"/etc is not in this agent's projects; what can be searched is /projects/here/fs"}
            {"query":"fn main"}
            ! bash: line 5: echo: write error: Operation not supported
            ! bash: line 10: echo: write error: Invalid argument
            ! bash: line 12: echo: write error: Invalid argument
        "#]],
    );
}

#[test]
fn the_mount_inside_the_project_is_not_searched() {
    // The project is the directory in which the mount itself lies; README.md of the tree would match.
    let spec = r#"{"projects": {"here": {"binds": {"/": {"path": ".."}}}}}"#;
    TestHost::of(spec).check(
        r#"
        cd agents/self/search_code
        echo '{"query":"TODO: everything"}' > control/search.json; jq -c '.result | [.matches[].path, .skipped]' result.json
        echo '{"query":"agents","glob":"*.md"}' > control/search.json; jq -c '.result | [.matches[].path, .skipped]' result.json
        "#,
        expect![[r#"
            ["/projects/here/fs/here/main.rs",0]
            [0]
        "#]],
    );
}

#[test]
fn what_git_ignores_and_what_leads_out_is_left_alone() {
    let house = TestHost::prepared(acheron::spec::DEFAULT, |here| {
        std::fs::write(here.join(".gitignore"), "*.log\n").unwrap();
        std::fs::write(here.join("a.log"), "needle\n").unwrap();
        std::fs::write(here.join("b.txt"), "a needle\n").unwrap();
        std::os::unix::fs::symlink("/etc", here.join("etc")).unwrap();
    });
    house.check(
        r#"
        cd agents/self/search_code
        echo '{"query":"NEEDLE"}' > control/search.json; jq -c '.result.matches[] | [.path, .line, .column]' result.json
        echo '{"query":"root","path":"etc"}' > control/search.json; jq -r .error.code result.json
        echo '{"query":"needle","path":"nowhere"}' > control/search.json; jq -r .error.code result.json
        "#,
        expect![[r#"
            ["/projects/here/fs/b.txt",1,3]
            forbidden
            not_found
        "#]],
    );
}
