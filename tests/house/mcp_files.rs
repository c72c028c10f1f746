//! The MCP server for files, from its registry, on a mounted tree: what it writes and edits arrives, and refusals reach its client.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{GUARD, command};
use crate::test_host::TestHost;

const PACKAGE: &str = "@modelcontextprotocol/server-filesystem";
const VERSION: &str = "2025.11.25";

/// The program of the server, installed once for all runs; `None` where the registry cannot be reached.
fn server() -> Option<PathBuf> {
    let home = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("mcp-filesystem-{VERSION}"));
    let program = home.join("node_modules").join(PACKAGE).join("dist/index.js");
    if !program.exists() {
        let mut npm = Command::new("timeout");
        npm.arg((2 * GUARD.as_secs()).to_string()).args(["npm", "install", "--no-audit", "--no-fund", "--prefix"]);
        // Node does not read the certificates of the system by itself.
        npm.env("NODE_EXTRA_CA_CERTS", "/etc/ssl/certs/ca-certificates.crt");
        let output = npm.arg(&home).arg(format!("{PACKAGE}@{VERSION}")).output().unwrap();
        if !output.status.success() {
            eprintln!("NOT TESTED: {PACKAGE} cannot be installed: {}", String::from_utf8_lossy(&output.stderr));
            return None;
        }
    }
    Some(program)
}

/// A client: one call per line of standard input, and what came back.
const CLIENT: &str = r#"
import json, subprocess, sys
server = subprocess.Popen(["node", sys.argv[1], "."], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
number = 0
def ask(method, params):
    global number
    number += 1
    server.stdin.write(json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}) + "\n"); server.stdin.flush()
    while True:
        said = json.loads(server.stdout.readline())
        if said.get("id") == number: return said["result"]
ask("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}})
server.stdin.write(json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}) + "\n"); server.stdin.flush()
def call(name, **arguments):
    said = ask("tools/call", {"name": name, "arguments": arguments})
    return ("refused: " if said.get("isError") else "") + said["content"][0]["text"]
me = "agents/charon/"
print(call("write_file", path=me + "memory/control/create.json", content='{"kind":"note","name":"ford","content":"At the willow.\n"}'.replace("\n", "\\n")))
ford = me + "memory/items/ford/content"
print(call("edit_file", path=ford, edits=[{"oldText": "willow", "newText": "oak"}]).startswith("```diff"))
print(open(ford).read(), end="")
page = me + "recall/nodes/semantic/Styx.md"
print(call("write_file", path=page, content="A river.\n"))
print(call("edit_file", path=page, edits=[{"oldText": "A river", "newText": "A cold river"}]).startswith("```diff"))
print(call("read_text_file", path=page), end="")
print(call("write_file", path=me + "memory/control/create.json", content='{"kind":"note"}'))
print("content is missing" in open(me + "memory/status.json").read())
print(call("write_file", path=me + "memory/control/craete.json", content="{}").startswith("refused: "))
server.stdin.close(); server.wait()
"#;

#[test]
fn the_mcp_server_for_files_writes_and_edits() {
    let spec = r#"{"agents":{"charon":{}},"recall":{"store":"wiki"}}"#;
    let house = TestHost::prepared(spec, |here| std::fs::create_dir_all(here.join("wiki/semantic")).unwrap());
    let Some(program) = server() else { return };
    let output = command(&house.root(), &["python3", "-c", CLIENT, program.to_str().unwrap()]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    let expected = expect_test::expect![[r#"
        Successfully wrote to agents/charon/memory/control/create.json
        True
        At the oak.
        Successfully wrote to agents/charon/recall/nodes/semantic/Styx.md
        True
        A cold river.
        refused: EINVAL: invalid argument
        True
        True
    "#]];
    let said: Vec<&str> = said.lines().map(|line| line.split(", rename").next().unwrap_or(line)).collect();
    expected.assert_eq(&(said.join("\n") + "\n"));
}
