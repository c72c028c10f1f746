//! Memory as a person uses it: with `cat`, `echo`, `mkdir` and `jq`.

use expect_test::expect;

use crate::test_host::TestHost;

#[test]
fn remember_change_look_at_the_old_version_search_restart_still_there() {
    let mut house = TestHost::new();
    house.check(
        r#"
        cd agents/self/memory
        echo '{"kind":"plan","name":"plan","content":"cross the river\n"}' > control/create.json
        jq -c .result.version result.json
        echo 'cross the river by night' > items/plan/content
        echo 'and come back' >> items/plan/content
        cat items/plan/content
        ls items/plan items/plan/versions
        cat items/plan/versions/1
        stat -c %s items/plan/content
        echo '{"query":"night river"}' > control/search.json
        jq -c '.result.results[] | [.memory_path, .version, .snippet]' result.json
        jq -c '[.tokens, .items[0].memory_path, .items[0].version]' active.json
        "#,
        expect![[r#"
            1
            cross the river by night
            and come back
            items/plan:
            content
            meta.json
            versions

            items/plan/versions:
            1
            2
            3
            cross the river
            39
            ["/agents/self/memory/items/plan",3,"cross the river by night and come back"]
            [12,"/agents/self/memory/items/plan",3]
        "#]],
    );
    house.restart();
    house.check(
        r#"
        cd agents/self/memory
        cat items/plan/content items/plan/versions/2
        jq -c '[.version, .kind, .active, .pinned]' items/plan/meta.json
        "#,
        expect![[r#"
            cross the river by night
            and come back
            cross the river by night
            [3,"plan",true,false]
        "#]],
    );
}

#[test]
fn a_directory_is_a_note() {
    TestHost::new().check(
        r#"
        cd agents/self/memory/items
        mkdir idea
        mkdir idea
        mkdir Idea
        echo fly > idea/content
        rm idea/content
        touch idea/new
        rmdir idea
        ls
        cat idea/content
        rmdir idea
        echo '{"memory_path":"idea","version":2}' > ../control/restore.json
        jq -c .result.version ../result.json
        cat idea/content
        "#,
        expect![[r#"
            4
            fly
            ! mkdir: cannot create directory 'idea': File exists
            ! mkdir: cannot create directory 'Idea': Permission denied
            ! rm: cannot remove 'idea/content': Operation not permitted
            ! touch: cannot touch 'idea/new': Permission denied
            ! cat: idea/content: No such file or directory
            ! rmdir: failed to remove 'idea': No such file or directory
        "#]],
    );
}

#[test]
fn every_refusal_has_its_number_and_its_sentence() {
    TestHost::new().check(
        r#"
        cd agents/self/memory
        echo '{"kind":"law","name":"law","content":"x","write_protected":true,"unevictable":true}' > control/create.json
        jq -c .ok result.json
        echo y > items/law/content
        rmdir items/law
        mkdir items/note
        head -c 1048576 /dev/zero | tr '\0' x > items/note/content; stat -c %s items/note/content
        head -c 1048577 /dev/zero | tr '\0' y > items/note/content; stat -c %s items/note/content
        printf '\xff' | cat > items/note/content
        echo y > items/note/versions/1
        say() { echo "$2" > control/$1.json; jq -c '.error | [.code, .message]' result.json; }
        say create '{"kind":"law","name":"law","content":"y"}'
        say mutate '{"memory_path":"law","content":"y"}'
        say mutate '{"memory_path":"note","append":"y","if_version":9}'
        say evict '{"memory_path":"law"}'
        say load '{"memory_path":"/agents/styx/memory/items/law"}'
        say load '{"memory_path":"nothing"}'
        say load '{"memory_path":"items/../law"}'
        say summarize '{"memory_paths":["note"]}'
        say search '{"query":"x","limit":0}'
        ls items/note/versions
        "#,
        expect![[r#"
            true
            1048576
            1048576
            ["already_exists","there is a memory law already; mutate it, or choose another name"]
            ["forbidden","the memory law is write-protected"]
            ["conflict","version 9 of note is not the latest: that is version 2"]
            ["forbidden","the memory law is unevictable"]
            ["forbidden","/agents/styx/memory/items/law: the memory of styx is not yours"]
            ["not_found","there is no memory nothing"]
            ["invalid_payload","`items/../law` is not a memory_path: write /agents/self/memory/items/<name>, or …/<name>/versions/<n>"]
            ["unavailable","no model is there to sum up: give `text`"]
            ["invalid_payload","limit is 1 to 200"]
            1
            2
            ! bash: line 5: items/law/content: Permission denied
            ! rmdir: failed to remove 'items/law': Permission denied
            ! tr: write error: File too large
            ! cat: write error: Invalid argument
            ! cat: write error: Invalid argument
            ! bash: line 11: items/note/versions/1: Permission denied
            ! environment: line 12: echo: write error: Permission denied
            ! environment: line 12: echo: write error: Invalid argument
            ! environment: line 12: echo: write error: Invalid argument
        "#]],
    );
}

#[test]
fn a_reader_waits_for_a_change_and_hears_what_left() {
    let spec = r#"{"agents":{"charon":{}},"memory":{"active_tokens":16}}"#;
    TestHost::of(spec).check(
        r#"
        cd agents/self
        echo '{"paths":["/agents/self/memory/items"]}' > events/control/wait.json
        mkdir memory/items/first
        jq -c '[.event_path, .change]' events/next.json
        echo 'one two three four five six' > memory/items/first/content
        jq -c '[.event_path, .change]' events/next.json
        echo '{"kind":"note","name":"second","content":"one two three four five six seven"}' > memory/control/create.json
        jq -c .result.evicted memory/result.json
        jq -c '[.event_path, .change]' events/next.json events/next.json
        jq -c '[(.items | map(.memory_path)), (.left | map(.tombstone))]' memory/active.json
        "#,
        expect![[r#"
            ["/agents/charon/memory/items/first",{"memory":"created","version":1}]
            ["/agents/charon/memory/items/first",{"memory":"changed","version":2}]
            ["/agents/self/memory/items/first"]
            ["/agents/charon/memory/items/second",{"memory":"created","version":1,"similar":[{"memory_path":"/agents/self/memory/items/first","share":0.83}]}]
            ["/agents/charon/memory/items/first",{"memory":"evicted","version":2,"tombstone":"note, 9 tokens: one two three four five six"}]
            [["/agents/self/memory/items/second"],["note, 9 tokens: one two three four five six"]]
        "#]],
    );
}

#[test]
fn words_without_spaces_are_found() {
    TestHost::new().check(
        r#"
        cd agents/self/memory
        mkdir items/a items/b
        echo '東京都に住んでいる' > items/a/content
        echo '我们决定使用数据库' > items/b/content
        for word in 東京 数据 京都 住 'AND OR (' '"' '*'; do
            jq -cn --arg q "$word" '{query: $q}' > control/search.json
            jq -c '[.error.code, (.result.results // [] | map(.memory_path))]' result.json
        done
        "#,
        expect![[r#"
            [null,["/agents/self/memory/items/a"]]
            [null,["/agents/self/memory/items/b"]]
            [null,["/agents/self/memory/items/a"]]
            [null,["/agents/self/memory/items/a"]]
            [null,[]]
            [null,[]]
            [null,[]]
        "#]],
    );
}
