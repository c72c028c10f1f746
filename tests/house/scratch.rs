//! Temp and rename is a write: programs that save a file by writing another beside it and renaming that.

use std::path::Path;

use crate::common::{command, python, session, until};
use crate::test_host::TestHost;

fn house() -> TestHost {
    let spec = r#"{"agents":{"charon":{}},"recall":{"store":"wiki"}}"#;
    TestHost::prepared(spec, |here| {
        std::fs::create_dir_all(here.join("wiki/semantic")).unwrap();
        std::fs::write(here.join("wiki/semantic/Obol.md"), "A coin of copper.\n").unwrap();
    })
}

/// A host with a memory called `ford`.
fn with_a_memory() -> TestHost {
    let house = house();
    let new = r#"{"kind":"note","name":"ford","content":"The ford is at the willow.\n"}"#;
    std::fs::write(house.root().join("agents/charon/memory/control/create.json"), new).unwrap();
    house
}

const FORD: &str = "agents/charon/memory/items/ford/content";

#[test]
fn a_scratch_file_that_is_renamed_onto_a_control_file_is_a_command() {
    let house = house();
    for (at, name) in [
        "create.json.tmp.1.ab",
        "create.json.0f3e9a77.tmp",
        ".create.json.swp",
        "create.json~",
        "create.json.vsctmp",
        "sedAb3xYz",
        ".tmpXy12",
        "tmpabcdef",
    ]
    .into_iter()
    .enumerate()
    {
        let said = python(
            &house.root().join("agents/charon/memory/control"),
            &format!(
                "import os, json
fd = os.open('{name}', os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
os.write(fd, json.dumps(dict(kind='note', name='n{at}', content='by {name}')).encode())
os.fchmod(fd, 0o644); os.fsync(fd); os.close(fd)
assert os.stat('{name}').st_size > 20, os.stat('{name}')
assert '{name}' not in os.listdir('.')
os.rename('{name}', 'create.json')
try: os.stat('{name}'); print('still there')
except FileNotFoundError: pass
print(open('create.json').read()[:1])"
            ),
        );
        assert_eq!(said, "{\n", "{name}");
        let kept = std::fs::read_to_string(house.root().join(format!("agents/charon/memory/items/n{at}/content")));
        assert_eq!(kept.unwrap(), format!("by {name}"));
    }
}

#[test]
fn a_refused_rename_fails_and_says_why_in_the_status() {
    let house = house();
    let control = house.root().join("agents/charon/memory/control");
    let said = python(
        &control,
        "import os
open('create.json.tmp', 'w').write('{\"kind\":\"note\"}')
try: os.rename('create.json.tmp', 'create.json'); print('taken')
except OSError as error: print(error.strerror)
print(open('create.json.tmp').read())
os.unlink('create.json.tmp')
print(os.path.exists('create.json.tmp'))",
    );
    assert_eq!(said, "Invalid argument\n{\"kind\":\"note\"}\nFalse\n");
    let status = session(&house.root(), "jq -r '.state + \": \" + .error.message' agents/charon/memory/status.json");
    assert!(status.starts_with("refused: ") && status.contains("content is missing"), "{status}");
    assert_eq!(session(&house.root(), "ls agents/charon/memory/items"), "");
}

#[test]
fn what_cannot_be_made_is_refused_as_forbidden() {
    let house = house();
    let said = python(
        &house.root(),
        "import os, errno
def tried(what, *words):
    try: what(*words); print('made', words)
    except OSError as error:
        if error.errno != errno.EACCES: print(words, error)
new = lambda path: os.close(os.open(path, os.O_CREAT | os.O_WRONLY))
control, nodes = 'agents/charon/memory/control/', 'agents/charon/recall/nodes/'
for name in ['craete.json', 'my-create.json', 'notes.txt', 'README.md.tmp']: tried(new, control + name)
for name in ['x', 'README.md', 'README.md.tmp', '.tmp1']: tried(new, name)
tried(new, nodes + 'page.txt')
tried(new, nodes + 'semantic/[bad].md')
tried(os.mkdir, control + 'dir'); tried(os.mkdir, 'dir'); tried(os.symlink, 'x', control + 'link')
tried(os.mkfifo, control + 'fifo'); tried(os.link, control + 'create.json', control + 'hard')",
    );
    assert_eq!(said, "");
}

#[test]
fn a_scratch_file_is_private_to_its_process_and_goes_with_it() {
    let house = house();
    let memory = house.root().join("agents/charon/memory");
    let script = "import subprocess
draft = open('control/create.json.tmp', 'w'); draft.write('{\"kind\": \"note\"'); draft.flush()
look = 'cat control/create.json.tmp; ls control | grep tmp; mv control/create.json.tmp control/create.json; rm -f control/create.json.tmp'
print(subprocess.run(['sh', '-c', look], capture_output=True, text=True).stderr.count('No such file'))
print(open('control/create.json.tmp').read())";
    assert_eq!(python(&memory, script), "2\n{\"kind\": \"note\"\n");
    let status = || std::fs::read_to_string(memory.join("status.json")).unwrap();
    until("the end is noted", || status().contains("never renamed"));
    assert!(status().contains("`create.json.tmp` (15 bytes) was never renamed to its place"), "{}", status());
}

#[test]
fn scratch_files_are_bounded() {
    let house = house();
    let said = python(
        &house.root().join("agents/charon/memory/control"),
        "import os, errno
made = 0
try:
    while True: open(f'create.json.tmp.{made}', 'w'); made += 1
except OSError as error: print(made, error.errno == errno.EDQUOT)
for n in range(1, made): os.unlink(f'create.json.tmp.{n}')
try: os.truncate('create.json.tmp.0', 1 << 30); print('grown')
except OSError as error: print('refused')",
    );
    assert_eq!(said, "32 True\nrefused\n");
}

#[test]
fn sed_changes_a_memory_and_a_page_in_place() {
    let house = with_a_memory();
    let said = house.says(&format!(
        "sed -i s/willow/oak/ {FORD}; cat {FORD}
        sed -i s/copper/silver/ agents/charon/recall/nodes/semantic/Obol.md; cat agents/charon/recall/nodes/semantic/Obol.md"
    ));
    assert_eq!(said, "The ford is at the oak.\nA coin of silver.\n");
}

#[test]
fn sponge_soaks_up_into_a_memory() {
    let house = with_a_memory();
    assert_eq!(house.says(&format!("tr a-z A-Z < {FORD} | sponge {FORD}; cat {FORD}")), "THE FORD IS AT THE WILLOW.\n");
}

#[test]
fn vim_saves_by_rename_and_in_place() {
    for how in ["no", "yes", "auto"] {
        let house = with_a_memory();
        for file in [FORD, "agents/charon/recall/nodes/semantic/Obol.md"] {
            let mut vim = command(&house.root(), &["vim", "-N", "-u", "NONE", "-i", "NONE", "-es"]);
            let set = format!("set backupcopy={how} directory=. writebackup swapfile");
            vim.args(["--cmd", &set, "-c", "%s/$/ Still./", "-c", "wq", file]);
            let output = vim.output().unwrap();
            assert!(output.status.success(), "{how} {file}: {output:?}");
            assert!(session(&house.root(), &format!("cat {file}")).ends_with(". Still.\n"), "{how} {file}");
        }
        let dir = house.root().join("agents/charon/memory/items/ford");
        assert!(!dir.join("content~").exists());
        assert!(!dir.join(".content.swp").exists());
    }
}

#[test]
fn a_new_page_is_made_by_rename() {
    let house = house();
    let nodes = house.root().join("agents/charon/recall/nodes/semantic");
    let said = python(
        &nodes,
        "import os
open('Styx.md.tmp.77.19a', 'w').write('A river. [[Obol]]\\n')
os.rename('Styx.md.tmp.77.19a', 'Styx.md')
print(open('Styx.md').read(), sorted(os.listdir('.')))",
    );
    assert_eq!(said, "A river. [[Obol]]\n ['Obol.md', 'Styx.md']\n");
}

/// Claude Code compares the size of what it has saved with what it wrote, and reports a failure where they differ.
#[test]
fn a_program_that_looks_whether_all_of_it_has_arrived_finds_it() {
    let house = with_a_memory();
    let said = python(
        &house.root().join("agents/charon"),
        r#"import os, subprocess
for path, text in [('memory/control/create.json', '{"kind":"note","name":"raft","content":"wood"}'), ('chat/control/input', 'Hello!')]:
    os.stat(path)
    temp = f'{path}.tmp.{os.getpid()}.19a'
    open(temp, 'w').write(text); os.rename(temp, path)
    print(os.stat(path).st_size - len(text), subprocess.run(['stat', '-c%s', path], capture_output=True, text=True).stdout.strip())
print(open('memory/items/raft/content').read())"#,
    );
    assert_eq!(
        said,
        "0 0
0 0
wood
"
    );
}

/// How Node's programs save: the MCP server for files, VS Code, Claude Code.
#[test]
fn node_saves_by_rename() {
    let house = with_a_memory();
    let script = r"
const fs = require('fs/promises'), { randomBytes } = require('crypto');
(async () => {
  const [path] = process.argv.slice(1);
  await fs.writeFile(path, 'x', { flag: 'wx' }).then(() => console.log('made'), (error) => console.log(error.code));
  for (const [text, temp] of [['one', `${path}.${randomBytes(16).toString('hex')}.tmp`],
      ['two', `${path}.tmp.${process.pid}.${Date.now()}`], ['three', `${path}.vsctmp`]]) {
    await fs.writeFile(temp, text, 'utf-8');
    await fs.chmod(temp, (await fs.stat(path)).mode);
    await fs.rename(temp, path);
    console.log(await fs.readFile(path, 'utf-8'));
  }
})()";
    let output = command(&house.root(), &["node", "-e", script, FORD]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert_eq!(said, "EEXIST\none\ntwo\nthree\n");
}

#[test]
fn an_agent_saves_by_rename_in_its_sandbox() {
    let house = with_a_memory();
    let run = |script: &str| {
        let mut exec = command(Path::new("/"), &[env!("CARGO_BIN_EXE_acheron"), "exec", "--root"]);
        exec.arg(house.root()).args(["--agent", "charon", "--", "sh", "-c", script]);
        let output = exec.output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
    };
    let said = run("cd /agents/self/memory/items/ford && sed -i s/willow/birch/ content && cat content");
    assert_eq!(said, "The ford is at the birch.\n");
}

/// What would be lost is refused, and the reason can be read.
#[test]
fn a_copy_that_nobody_would_rename_is_refused_and_told() {
    let house = with_a_memory();
    let page = "agents/charon/recall/nodes/semantic/Obol.md";
    let control = "agents/charon/memory/control/search.json";
    for (what, status) in [
        (format!("echo x > {FORD}.txt"), "memory"),
        (format!("cp {FORD} {FORD}.bak"), "memory"),
        (format!("cp {control} {control}.bak"), "memory"),
        ("echo '{}' > agents/charon/memory/control/fly.json".to_owned(), "memory"),
        ("echo hello > agents/charon/chat/control/input.txt".to_owned(), "chat"),
        (format!("cp {page} {page}.bak"), "recall"),
    ] {
        let status = format!("jq -r .error.message agents/charon/{status}/status.json");
        let said = session(&house.root(), &format!("({what}) 2> /dev/null && echo lost; {status}"));
        assert!(said.starts_with("no file `") || said.contains(".bak"), "{what}: {said}");
    }
    for what in [
        format!("mv {FORD} {FORD}.bak"),
        format!("mv {FORD} {FORD}~"),
        format!("mv {page} {page}.bak"),
        format!("mv {control} {control}~"),
        format!("sed -i.bak s/o/0/ {FORD}"),
        format!("sed -i~ s/o/0/ {page}"),
    ] {
        let said = session(&house.root(), &format!("({what}) 2> /dev/null && echo lost; cat {FORD} {page}"));
        assert_eq!(said, "The ford is at the willow.\nA coin of copper.\n", "{what}");
    }
}

#[test]
fn a_draft_that_was_never_renamed_is_told_of_every_kind() {
    let house = with_a_memory();
    for (path, service) in [
        (format!("{FORD}.tmp"), "memory"),
        ("agents/charon/memory/control/create.json~".to_owned(), "memory"),
        ("agents/charon/chat/control/input.tmp".to_owned(), "chat"),
        ("agents/charon/recall/nodes/semantic/Obol.md.tmp".to_owned(), "recall"),
        ("agents/charon/recall/nodes/semantic/New.md.tmp".to_owned(), "recall"),
        ("agents/charon/recall/nodes/semantic/tmpabcdef".to_owned(), "recall"),
    ] {
        assert_eq!(session(&house.root(), &format!("cp /etc/hostname {path}")), "");
        let name = path.rsplit('/').next().unwrap();
        let status = house.root().join(format!("agents/charon/{service}/status.json"));
        until(&path, || std::fs::read_to_string(&status).unwrap().contains(&format!("`{name}` (")));
    }
}

#[test]
fn names_that_other_savers_make_up_are_taken() {
    let house = with_a_memory();
    let said = python(
        &house.root().join("agents/charon/memory/items/ford"),
        "import os
for name in ['.content1234567', '.goutputstream-AB3XYZ', '1234567890.tmp', '0b5f7a3e-2d1c-4f5e-8a9b-0c1d2e3f4a5b', 'foo.tmp', 'aB3xYz9Q']:
    open(name, 'w').write(name); os.rename(name, 'content')
    if open('content').read() != name: print(name)
fd = os.open('content.tmp', os.O_CREAT | os.O_RDWR); os.write(fd, b'before'); os.rename('content.tmp', 'content')
try: os.write(fd, b'after'); print('lost')
except OSError as error: print(error.strerror)
print(open('content').read())",
    );
    assert_eq!(said, "Bad file descriptor\nbefore\n");
    // Once in some hundred times the name that perl draws is like a word.
    let perl =
        format!("for try in 1 2 3; do perl -i -pe 's/before/after/' {FORD} 2> /dev/null && break; done; cat {FORD}");
    assert_eq!(session(&house.root(), &perl), "after\\\n");
}

/// One agent fills what it has, and the operator's files are saved as before.
#[test]
fn what_one_principal_leaves_unfinished_is_no_loss_of_another() {
    let house = with_a_memory();
    let fill = "import os, time
made = []
try:
    for n in range(30):
        fd = os.open(f'/agents/self/memory/control/create.json.tmp.{n}', os.O_CREAT | os.O_WRONLY)
        os.write(fd, b'x' * (1 << 20)); made.append(fd)
except OSError as error: print(len(made), error.strerror, flush=True)
input()";
    let mut exec = command(Path::new("/"), &[env!("CARGO_BIN_EXE_acheron"), "exec", "--root"]);
    exec.arg(house.root()).args(["--agent", "charon", "--", "python3", "-c", fill]);
    let mut exec = exec.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(exec.stdout.take().unwrap()), &mut line).unwrap();
    assert_eq!(line, "16 Disk quota exceeded\n");
    assert_eq!(house.says(&format!("sed -i s/willow/elm/ {FORD}; cat {FORD}")), "The ford is at the elm.\n");
    drop(exec.stdin.take());
    exec.wait().unwrap();
}

#[test]
fn what_is_too_long_for_a_memory_is_told() {
    let house = with_a_memory();
    let status = "jq -r .error.code agents/charon/memory/status.json";
    let said =
        session(&house.root(), &format!("head -c 2000000 /dev/zero | tr '\\0' x > {FORD} 2> /dev/null; {status}"));
    assert_eq!(said, "too_large\n");
}
