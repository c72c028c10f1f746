//! Projects, and names that lead elsewhere.

use expect_test::expect;

use crate::terminal::WRITABLE;
use crate::test_host::TestHost;
use acheron::policy::PrincipalCaller;

#[test]
fn a_project_is_the_directory_itself() {
    let house = TestHost::of(WRITABLE);
    std::os::unix::fs::symlink("/etc/hostname", house.here().join("out")).unwrap();
    house.check(
        r#"
        cd projects
        cat p/fs/notes.txt
        echo two > p/fs/new && mv p/fs/new p/fs/moved && ln -s moved p/fs/link && chmod 600 p/fs/moved && cat p/fs/link
        stat -c '%a %s' p/fs/moved
        readlink p/fs/out
        touch other/fs/x
        rm other/fs/notes.txt
        findmnt -rn -o FSTYPE,OPTIONS p/fs | cut -d' ' -f1 | grep -v fuse > /dev/null && echo native
        jq -c .binds p/meta.json
        "#,
        expect![[r#"
            a note
            two
            600 4
            /etc/hostname
            native
            [{"bind_path":"/","target_path":".","read_only":false,"shown_by":"kernel"}]
            ! touch: cannot touch 'other/fs/x': Read-only file system
            ! rm: cannot remove 'other/fs/notes.txt': Read-only file system
        "#]],
    );
    let root = house.root();
    drop(house);
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    assert!(!mounts.contains(&root.display().to_string()), "something stayed mounted");
}

#[test]
fn the_hosts_own_file_tools_see_the_project_too() {
    let house = TestHost::of(WRITABLE);
    let read = house.inside(async |host| {
        let caller = acheron_vfs::Caller::agent("charon");
        let handle = host.tree().open_path(&caller, "/projects/p/fs/notes.txt", acheron_vfs::Open::READ).unwrap();
        handle.read(0, 100).wait().await.unwrap()
    });
    assert_eq!(read, "a note\n");
}

#[test]
fn a_name_of_ones_own_leads_elsewhere() {
    let mut house = TestHost::of(WRITABLE);
    house.check(
        r#"
        cd agents/charon/mounts
        echo '{"bind_path":"/agents/self/work","target_path":"/projects/p/fs"}' > control/bind.json
        jq -c .result result.json
        cat ../work/notes.txt
        ls .. | grep work
        echo '{"path":"/agents/self/work/notes.txt"}' > control/resolve.json
        jq -c .result result.json
        for b in /agents/styx/x:/global /agents/self/memory:/global /agents/self/x:/agents/styx /agents/self/x:/agents/self; do
            jq -cn --arg b "$b" '($b / ":") as [$p, $t] | {bind_path: $p, target_path: $t}' > control/bind.json
            jq -c '[.error.code, .error.message]' result.json
        done
        cat ../../../meta/ns
        "#,
        expect![[r#"
            {"binds":[{"bind_path":"/agents/charon/work","target_path":"/projects/p/fs"}]}
            a note
            work
            {"path":"/agents/charon/work/notes.txt","resolved_path":"/projects/p/fs/notes.txt","matched":true}
            ["invalid_payload","`/agents/styx/x` cannot be bound: a bind_path is a new name in your own directory, /agents/self/<name>, or in a project that you may write, /projects/<project>/<name>"]
            ["already_exists","/agents/charon/memory is there already, and not a binding"]
            ["not_found","there is no `/agents/styx`"]
            ["invalid_payload","`/agents/charon/x` lies in `/agents/charon`: a walk there would never end"]
            {"op":"bind","arguments":{"bind_path":"/agents/charon/work","target_path":"/projects/p/fs"}}
            ! Error: writing output failed: Invalid argument
        "#]],
    );
    house.restart();
    house.check(
        r#"
        cat agents/charon/work/notes.txt
        echo '{"bind_path":"/agents/self/work"}' > agents/charon/mounts/control/unbind.json
        jq -c .result agents/charon/mounts/result.json
        ls agents/charon | grep -c work
        "#,
        expect![[r#"
            a note
            {"binds":[]}
            0
        "#]],
    );
}

#[test]
fn a_change_from_outside_is_an_event() {
    for mirror in [false, true] {
        let spec = WRITABLE.replacen(r#""read_only": false"#, &format!(r#""read_only": false, "mirror": {mirror}"#), 1);
        let house = TestHost::of(&spec);
        let here = house.here();
        house.check(
            &format!(
                r#"
            cd agents/charon/events
            on() {{ echo '{{"paths":["/projects/p/fs/'$1'"],"timeout_ms":60000}}' > control/wait.json; }}
            on new.txt
            echo x > {here}/new.txt
            jq -c '[.event_path, .change.what]' next.json
            cat ../../../projects/p/fs/new.txt
            on moved.txt
            mv {here}/new.txt {here}/moved.txt
            jq -c '[.event_path, .change.what]' next.json
            ls ../../../projects/p/fs
            "#,
                here = here.display()
            ),
            expect![[r#"
                ["/projects/p/fs/new.txt","created"]
                x
                ["/projects/p/fs/moved.txt","renamed"]
                main.rs
                moved.txt
                notes.txt
            "#]],
        );
    }
}

#[test]
fn a_project_has_names_that_lead_elsewhere() {
    let spec = WRITABLE.replacen(r#""projects": ["p"]"#, r#""projects": ["p", "other"]"#, 1);
    let mut house = TestHost::of(&spec);
    house.check(
        r#"
        cd agents/charon/mounts
        bind() { jq -cn --arg p "$1" --arg t "$2" '{bind_path: $p, target_path: $t}' > control/bind.json
                 jq -c 'if .ok then .result.binds | length else [.error.code, .error.message] end' result.json; }
        bind /projects/p/pages /global/library
        bind /agents/self/work /projects/p
        bind /projects/p/fs /global/library
        bind /projects/p/back /agents/self
        bind /projects/p/up /projects
        bind /projects/p/styx /agents/styx
        bind /projects/other/x /global/library
        ls ../../../projects/p
        head -1 ../../../projects/p/pages/Index.md
        echo '{"path":"/projects/p/pages/Index.md"}' > control/resolve.json
        jq -c '[.result.resolved_path, .result.matched]' result.json
        cd ../terminal
        echo '{"command":"readlink /projects/p/pages; head -1 /projects/p/pages/Index.md"}' > control/exec.json
        jq -r '.result.stdout + .result.stderr' result.json
        "#,
        expect![[r#"
            1
            2
            ["already_exists","/projects/p/fs is there already, and not a binding"]
            ["invalid_payload","`/projects/p/back` can be reached through `/projects/p`: a walk there would never end"]
            ["invalid_payload","`/projects/p/up` lies in `/projects`: a walk there would never end"]
            ["not_found","there is no `/agents/styx`"]
            ["read_only","`/projects/other` has no bind that can be written"]
            README.md
            fs
            meta.json
            pages
            views
            # The library
            ["/global/library/Index.md",true]
            /global/library
            # The library

        "#]],
    );
    house.restart();
    house.check(
        r#"
        cat meta/ns
        saved=$(cat meta/ns)
        cd agents/charon/mounts
        for path in /projects/p/pages /agents/self/work; do
            echo '{"bind_path":"'$path'"}' > control/unbind.json; jq -c .ok result.json
        done
        wc -l < ../../../meta/ns; ls ../../../projects/p
        echo "$saved" | while read -r line; do echo "$line" > control/invoke.json; jq -c .ok result.json; done
        [ "$saved" = "$(cat ../../../meta/ns)" ] && echo "as it was"
        "#,
        expect![[r#"
            {"op":"bind","arguments":{"bind_path":"/agents/charon/work","target_path":"/projects/p"}}
            {"op":"bind","arguments":{"bind_path":"/projects/p/pages","target_path":"/global/library"}}
            true
            true
            0
            README.md
            fs
            meta.json
            views
            true
            true
            as it was
        "#]],
    );
}

#[test]
fn a_bind_over_a_name_that_is_not_there_is_there_for_programs_too() {
    let spec = r#"{ "layout": "acheron-1", "agents": { "a": { "projects": ["p"] } },
        "projects": { "p": { "binds": { "/": { "path": "." }, "/library": { "path": "../ns/../shelf" } } } } }"#;
    let house = TestHost::prepared(spec, |here| {
        std::fs::create_dir(here.join("../shelf")).unwrap();
        std::fs::write(here.join("../shelf/book"), "a book\n").unwrap();
    });
    house.check(
        r#"
        ls projects/p/fs
        cat projects/p/fs/library/book
        echo '{"command":"pwd; ls; cat library/book; touch new"}' > agents/a/terminal/control/exec.json
        jq -r '.error.message // .result.stdout + .result.stderr' agents/a/terminal/result.json
        "#,
        expect![[r#"
            library
            main.rs
            notes.txt
            a book
            /projects/p/fs
            library
            main.rs
            notes.txt
            a book
            touch: cannot touch 'new': Read-only file system

        "#]],
    );
    assert!(!house.here().join("library").exists(), "nothing was made in the directory itself");
}
