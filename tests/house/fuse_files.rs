//! The laws of files, row by row, with ordinary programs.

use std::time::SystemTime;

use expect_test::expect;

use crate::common::{check, python, session};
use crate::workshop::Workshop;
use acheron::policy::PrincipalCaller;
use acheron_vfs::{Node, text};

#[test]
fn a_tree_is_listed_and_walked_without_a_single_error() {
    let shop = Workshop::open();
    check(
        shop.root(),
        "ls; ls -l text.md | cut -c1-10; stat -c '%s %Y' text.md; ls many | wc -l; ls -l many | wc -l
         ls -lR . >/dev/null; find . -type f | wc -l; find . -type l; du -s . >/dev/null; stat -f -c %l .; df . >/dev/null
         ls -d box/. box/..; ls many | sort -c && echo sorted",
        expect![[r#"
            box
            computed
            control
            heard.json
            item
            live.txt
            log.txt
            many
            panics
            refused.json
            slow
            text.md
            waiting.json
            who
            -r--r--r--
            6 1000000000
            1000
            1001
            1013
            ./who
            255
            box/.
            box/..
            sorted
        "#]],
    );
}

#[test]
fn numbers_are_stable_and_the_same_whoever_asks() {
    let shop = Workshop::open();
    let numbers = "ls -i . | awk '{print $2, $1}'; stat -c '%n %i' *";
    let once = session(shop.root(), numbers);
    let (listed, asked): (Vec<&str>, Vec<&str>) = {
        let lines: Vec<&str> = once.lines().collect();
        let half = lines.len() / 2;
        (lines[..half].to_vec(), lines[half..].to_vec())
    };
    assert_eq!(listed, asked);
    drop(shop);
    assert_eq!(session(Workshop::open().root(), numbers), once);
}

#[test]
fn text_is_read_by_anything_and_written_by_nobody() {
    let shop = Workshop::open();
    check(
        shop.root(),
        "cat text.md; head -c 3 text.md; echo; dd if=text.md bs=2 skip=1 count=1 status=none; echo; cp text.md /dev/stdout
         grep -c first text.md; wc -c < text.md; echo $(<text.md); tail -c 3 text.md
         echo x > text.md; echo x >> text.md; truncate -s 0 text.md; cat text.md",
        expect![[r#"
            first
            fir
            rs
            first
            1
            6
            first
            st
            first
            ! bash: line 3: text.md: Permission denied
            ! bash: line 3: text.md: Permission denied
            ! truncate: cannot open 'text.md' for writing: Permission denied
        "#]],
    );
}

#[test]
fn text_that_changes_is_new_to_everyone_at_once() {
    let shop = Workshop::open();
    let root = shop.root();
    let mut open = std::fs::File::open(root.join("text.md")).unwrap();
    assert_eq!(std::fs::read(root.join("text.md")).unwrap(), b"first\n");
    for round in 0..200 {
        let words = "word ".repeat(round % 7) + &round.to_string();
        shop.knobs.page.set(words.clone(), SystemTime::now());
        // Whoever is answered after the change, here by a command, finds nothing old.
        session_free_echo(root);
        assert_eq!(std::fs::read_to_string(root.join("text.md")).unwrap(), words);
        assert_eq!(std::fs::metadata(root.join("text.md")).unwrap().len(), words.len() as u64);
        let mut again = String::new();
        std::io::Seek::rewind(&mut open).unwrap();
        std::io::Read::read_to_string(&mut open, &mut again).unwrap();
        assert_eq!(again, words);
    }
    assert!(shop.mount.request_counts()["open"] >= 400);
}

fn session_free_echo(root: &std::path::Path) {
    std::fs::write(root.join("control/echo.json"), "{\"op\":\"echo\"}").unwrap();
}

#[test]
fn unchanged_text_costs_no_read() {
    let shop = Workshop::open();
    let path = shop.root().join("text.md");
    std::fs::read(&path).unwrap();
    let before = shop.mount.request_counts();
    for _ in 0..50 {
        std::fs::read(&path).unwrap();
    }
    let after = shop.mount.request_counts();
    assert_eq!(after["read"], before["read"]);
    assert_eq!(after["lookup"], before["lookup"]);
    assert_eq!(after["open"], before["open"] + 50);
}

#[test]
fn names_come_and_go_and_lead_elsewhere() {
    let shop = Workshop::open();
    let root = shop.root();
    assert!(!root.join("new").exists());
    shop.knobs.root.put("new", Node::file(text("one")));
    assert_eq!(std::fs::read_to_string(root.join("new")).unwrap(), "one");
    for round in 0..50 {
        shop.knobs.root.put("new", Node::file(text(format!("two {round}"))));
        session_free_echo(root);
        assert_eq!(std::fs::read_to_string(root.join("new")).unwrap(), format!("two {round}"));
    }
    shop.knobs.root.put("new", Node::dir(acheron_vfs::Listing::default().file("x", text("below"))));
    session_free_echo(root);
    assert_eq!(std::fs::read_to_string(root.join("new/x")).unwrap(), "below");
    assert!(session(root, "ls").contains("new\n"));
    shop.knobs.root.take("new");
    session_free_echo(root);
    assert!(!root.join("new").exists());
    assert!(!session(root, "ls").contains("new\n"));
}

#[test]
fn a_directory_without_a_bell_is_asked_each_time() {
    let shop = Workshop::open();
    let root = shop.root();
    check(
        root,
        "ls computed; cat computed/one",
        expect![[r#"
        one
        two
        one by 0
    "#]],
    );
    *shop.knobs.names.lock() = vec!["one".to_owned(), "three".to_owned()];
    shop.knobs.fired.send_replace(7);
    check(
        root,
        "ls computed; cat computed/one computed/three computed/two",
        expect![[r#"
        one
        three
        one by 7
        three by 7
        ! cat: computed/two: No such file or directory
    "#]],
    );
}

#[test]
fn one_pass_shows_one_version() {
    let shop = Workshop::open();
    check(
        shop.root(),
        "for i in 1 2 3; do cat live.txt | tr -s 0-9 | tail -c 1; done; dd if=live.txt bs=1000 status=none | tr -s 0-9; echo
         stat -c %s live.txt; echo x > live.txt; wc -c < live.txt",
        expect![[r#"
            0123
            200000
            200000
            ! bash: line 2: live.txt: Permission denied
        "#]],
    );
    let passes = python(
        shop.root(),
        r#"
import os
f = os.open("live.txt", os.O_RDONLY)
g = os.open("live.txt", os.O_RDONLY)
a = os.read(f, 1000); b = os.read(g, 1000); c = os.read(f, 1000)
print(set(a) == set(c), set(a) == set(b))
os.lseek(f, 0, 0)
print(set(os.read(f, 1000)) == set(a))
"#,
    );
    expect![[r#"
        True False
        False
    "#]]
    .assert_eq(&passes);
}

#[test]
fn a_log_grows_under_its_readers() {
    let shop = Workshop::open();
    shop.knobs.log.line("one");
    check(
        shop.root(),
        "cat log.txt; stat -c %s log.txt; echo x >> log.txt",
        expect![[r#"
        one
        4
        ! bash: line 1: log.txt: Permission denied
    "#]],
    );
    let mut tail = crate::common::command(shop.root(), &["tail", "-n", "+1", "-s", "0.05", "-f", "log.txt"]);
    let mut tail = tail.stdout(std::process::Stdio::piped()).spawn().unwrap();
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(tail.stdout.take().unwrap()));
    assert_eq!(lines.next().unwrap().unwrap(), "one");
    for word in ["two", "three"] {
        shop.knobs.log.line(word);
        assert_eq!(lines.next().unwrap().unwrap(), word);
    }
    tail.kill().unwrap();
    tail.wait().unwrap();
    check(
        shop.root(),
        "cat log.txt; stat -c %s log.txt; tail -n 1 log.txt; dd if=log.txt bs=1 skip=4 count=3 status=none",
        expect![[r#"
        one
        two
        three
        14
        three
        two\
    "#]],
    );
}

#[test]
fn a_command_is_taken_by_the_write_that_completes_it() {
    let shop = Workshop::open();
    check(
        shop.root(),
        r#"
cat control/echo.json
echo '{"op":"echo"}' > control/echo.json && echo taken
echo '{"op":"echo"}' >> control/echo.json && echo taken
echo '{"op":"fly"}' > control/echo.json
printf '{"op":' > control/echo.json
echo 'rubbish' > control/echo.json
printf '\xff\xfe' > control/echo.json
cat refused.json
tr '\0' ' ' </dev/zero | head -c 1048577 > control/echo.json
echo '{"op":"echo"}' | tee control/echo.json >/dev/null && echo '{"op":"echo"}' | dd of=control/echo.json status=none && cp <(echo '{"op":"echo"}') control/echo.json && echo all
stat -c %s control/echo.json
truncate -s 0 control/echo.json; touch control/echo.json && echo touched
chmod 777 control/echo.json; chown 1 control/echo.json; mv control/echo.json x; rm control/echo.json; ln control/echo.json x; touch x; mkdir y; ln -s a b; mknod p p; rmdir many
"#,
        expect![[r#"
            {"op": "echo"}
            taken
            taken
            ["unknown operation \"fly\"","the command is incomplete: its JSON object has no end","a command is a JSON object, such as {\"op\": \"...\"}","a command is a JSON object, such as {\"op\": \"...\"}"]
            all
            15
            touched
            ! bash: line 5: echo: write error: Operation not supported
            ! bash: line 7: echo: write error: Invalid argument
            ! bash: line 8: printf: write error: Invalid argument
            ! head: write error: File too large
            ! chmod: changing permissions of 'control/echo.json': Operation not permitted
            ! chown: changing ownership of 'control/echo.json': Operation not permitted
            ! mv: cannot move 'control/echo.json' to 'x': Operation not permitted
            ! rm: cannot remove 'control/echo.json': Operation not permitted
            ! ln: failed to create hard link 'x' => 'control/echo.json': Permission denied
            ! touch: cannot touch 'x': Permission denied
            ! mkdir: cannot create directory 'y': Permission denied
            ! ln: failed to create symbolic link 'b': Permission denied
            ! mknod: p: Permission denied
            ! rmdir: failed to remove 'many': Operation not permitted
        "#]],
    );
    let node = session(
        shop.root(),
        r#"command -v node >/dev/null || { echo written; exit; }
node -e 'const fs = require("fs"); fs.writeFileSync("control/echo.json", JSON.stringify({op: "echo"})); console.log("written")'"#,
    );
    assert_eq!(node, "written\n");
    let said = python(
        shop.root(),
        r#"
with open("control/echo.json", "w") as f: f.write('{"op":"echo"}')
try:
    f = open("control/echo.json", "w"); f.write('{"op":"fly"}'); f.flush()
except OSError as e: print(e.strerror)
"#,
    );
    assert_eq!(said, "Operation not supported\n");
}

#[test]
fn each_handle_is_a_conversation_of_its_own() {
    let shop = Workshop::open();
    check(
        shop.root(),
        r#"
exec 3<>control/echo.json 4<>control/echo.json
echo '{"op":"echo","n":1}' >&3; echo '{"op":"echo","n":2}' >&4
cat <&3; cat <&4; cat <&3
echo '{"op":"echo","n":3}{"op":"echo","n":4}' >&3; cat <&3; cat <&3; cat <&3
echo '{"op":"slow"}' >&3; head -c 5 <&3; echo; echo '{"op":"fly"}' >&3; cat <&3
"#,
        expect![[r#"
            {"said":{"op":"echo","n":1}}
            {"said":{"op":"echo","n":2}}
            {"said":{"op":"echo","n":3}}
            {"said":{"op":"echo","n":4}}
            {"sai
            {"ok":false,"error":{"code":"unknown_operation","message":"unknown operation \"fly\""}}
            ! bash: line 6: echo: write error: Operation not supported
        "#]],
    );
}

#[test]
fn words_are_heard_when_the_speaker_closes() {
    let shop = Workshop::open();
    check(
        shop.root(),
        r#"
cat control/say
echo hello > control/say; cat heard.json
{ echo a; echo b; } > control/say; cat heard.json
{ /bin/echo c; /bin/echo d; } > control/say; cat heard.json
exec 3<>control/say; printf x >&3; cat <&3; echo; exec 3>&-
printf '\xff' > control/say
"#,
        expect![[r#"
            say something
            ["hello\n"]
            ["hello\n","a\nb\n"]
            ["hello\n","a\nb\n","c\nd\n"]
            heard: x
            ! bash: line 7: printf: write error: Invalid argument
        "#]],
    );
    let said = python(
        shop.root(),
        r#"
import os, threading
f = os.open("control/say", os.O_WRONLY)
os.write(f, b"from a thread")
t = threading.Thread(target=lambda: os.close(f)); t.start(); t.join()
print("from a thread" in open("heard.json").read())
"#,
    );
    assert_eq!(said, "True\n");
}

#[test]
fn an_item_takes_a_version_a_close() {
    let shop = Workshop::open();
    check(
        shop.root(),
        r#"
cat item; stat -c %s item
echo new > item; cat item; stat -c %s item
echo more >> item; cat item; stat -c %s item
printf XX | dd of=item conv=notrunc bs=1 seek=1 status=none; cat item
truncate -s 3 item; cat item; echo; truncate -s 0 item; stat -c %s item
cp text.md item; cat item; touch item && echo touched
python3 -c 'import os; os.truncate("item", 2)'; cat item; echo; python3 -c 'import os; os.truncate("item", 0)'; stat -c %s item
"#,
        expect![[r#"
            old words
            10
            new
            4
            new
            more
            9
            nXX
            more
            nXX
            0
            first
            touched
            fi
            0
        "#]],
    );
}

#[test]
fn a_directory_may_let_names_be_made() {
    let shop = Workshop::open();
    check(
        shop.root(),
        r#"
echo words > box/a; cat box/a; mkdir box/b; echo deeper > box/b/c; cat box/b/c; ls -R box
rm box/a; rm -r box/b; ls box; cat box/a
mkdir -p box/x/y && ls box
"#,
        expect![[r#"
            words
            deeper
            box:
            a
            b

            box/b:
            c
            x
            ! cat: box/a: No such file or directory
        "#]],
    );
}

#[test]
fn a_link_is_read_by_each_caller_for_itself() {
    let shop = Workshop::open();
    check(
        shop.root(),
        r#"for i in 1 2 3; do (read -r pid _ < /proc/self/stat; [ "$(exec readlink who)" != "$(exec readlink who)" ] && echo differs); done; test -L who && echo link"#,
        expect![[r#"
            differs
            differs
            differs
            link
        "#]],
    );
}

#[test]
fn who_does_not_want_to_wait_is_told_so() {
    let shop = Workshop::open();
    let script = r#"
import os, fcntl
f = os.open("waiting.json", os.O_RDONLY | os.O_NONBLOCK)
try: print(os.read(f, 100))
except BlockingIOError as e: print(e.strerror)
fcntl.fcntl(f, fcntl.F_SETFL, 0)
slow = os.open("slow", os.O_RDONLY | os.O_NONBLOCK)
print(os.read(slow, 100))
g = os.open("waiting.json", os.O_RDONLY)
fcntl.fcntl(g, fcntl.F_SETFL, os.O_NONBLOCK)
try: print(os.read(g, 100))
except BlockingIOError as e: print(e.strerror)
"#;
    expect![[r#"
        Resource temporarily unavailable
        b'fetched\n'
        Resource temporarily unavailable
    "#]]
    .assert_eq(&python(shop.root(), script));
    shop.settle("now\n");
    check(
        shop.root(),
        "dd if=waiting.json iflag=nonblock status=none; cat waiting.json waiting.json",
        expect![[r#"
        now
        now
        now
    "#]],
    );
}

#[test]
fn what_panics_is_an_error_and_the_mount_lives_on() {
    let shop = Workshop::open();
    check(
        shop.root(),
        "cat panics; cat panics; cat text.md",
        expect![[r#"
        first
        ! cat: panics: Input/output error
        ! cat: panics: Input/output error
    "#]],
    );
}

#[test]
fn names_have_their_limits_and_nothing_is_a_terminal() {
    let shop = Workshop::open();
    check(
        shop.root(),
        r#"
cat $(printf 'x%.0s' $(seq 256)) 2>&1 | tail -c 20; cat $(printf 'x%.0s' $(seq 255)) 2>&1 | tail -c 27
cat $'\xff'; test -t 0 < control/echo.json || echo no terminal; cat text.md/x; cat many
getfattr -d text.md 2>/dev/null; setfattr -n user.a -v b text.md 2>/dev/null || echo no attributes
python3 -c 'import os; f = os.open("text.md", 0); print(os.lseek(f, 0, os.SEEK_HOLE))'
"#,
        expect![[r#"
             File name too long
             No such file or directory
            no terminal
            no attributes
            6
            ! cat: ''$'\377': No such file or directory
            ! cat: text.md/x: Not a directory
            ! cat: many: Is a directory
        "#]],
    );
}

#[test]
fn the_view_of_a_process_and_the_view_from_inside_agree() {
    let shop = Workshop::open();
    shop.settle("settled\n");
    shop.knobs.log.line("a line");
    let seen = session(
        shop.root(),
        r#"find . -mindepth 1 ! -name panics ! -name live.txt -printf '/%P %y %m\n' | sort; find . -type f ! -name panics ! -name live.txt -print0 | sort -z | xargs -0 cat | md5sum"#,
    );
    let caller = acheron_vfs::Caller::operator();
    let mut lines = Vec::new();
    let mut files = Vec::new();
    let mut dirs = vec!["/".to_owned()];
    while let Some(dir) = dirs.pop() {
        for entry in shop.tree.list(&caller, &dir).unwrap() {
            if ["/panics", "/live.txt"].contains(&&*entry.path) {
                continue;
            }
            let (kind, mode) = match &entry.node {
                Node::Dir(_) => ('d', 0o555),
                Node::File(file) => ('f', file.mode()),
                Node::Link(_) => ('l', 0o777),
            };
            lines.push(format!("{} {kind} {mode:o}\n", entry.path));
            match kind {
                'd' => dirs.push(entry.path),
                'f' => files.push(entry.path),
                _ => (),
            }
        }
    }
    lines.sort();
    files.sort();
    let bytes: Vec<u8> =
        files.iter().flat_map(|path| shop.runtime.block_on(shop.tree.read(&caller, path)).unwrap().to_vec()).collect();
    let sum = session_md5(&bytes);
    assert_eq!(seen, lines.concat() + &sum);
}

fn session_md5(bytes: &[u8]) -> String {
    let scratch = tempfile::tempdir().unwrap();
    std::fs::write(scratch.path().join("all"), bytes).unwrap();
    session(scratch.path(), "md5sum < all")
}
