//! The clients of diod, an independent implementation of the protocol, read a tree. `scripts/test` installs them.

use std::path::Path;
use std::process::Output;
use std::sync::Arc;
use std::time::Duration;

use acheron_base::Result;
use acheron_ninep::{Address, Attach, AttachRequest, Attached, Listening, Server, listen};
use acheron_vfs::{Access, AccessControl, Answer, Caller, Listing, Tree, live, text, waiting};
use tokio::process::Command;
use tokio_util::sync::CancellationToken;

struct Everybody;

impl AccessControl for Everybody {
    fn check(&self, _caller: &Caller, _action: Access, _path: &str) -> Result<()> {
        Ok(())
    }

    fn sees(&self, _caller: &Caller, _path: &str) -> bool {
        true
    }
}

/// The name of the tree is the name of the caller.
#[async_trait::async_trait]
impl Attach for Everybody {
    async fn attach(&self, request: AttachRequest) -> Result<Attached> {
        Ok(Attached { caller: Caller::named(&request.tree), ended: CancellationToken::new() })
    }
}

async fn served(address: &Address) -> Listening {
    let root = Listing::default()
        .file("hello", live(|caller| Ok(format!("hello, {}\n", caller.identity).into())))
        .file("large", text("0123456789abcde\n".repeat(20_000)))
        .file("never", waiting(|_| Answer::later(std::future::pending())))
        .dir("sub", Listing::default().file("page", text("two\n")));
    let tree = Tree::new(Arc::new(root), Arc::new(Everybody));
    listen(Arc::new(Server::new(tree, Arc::new(Everybody))), address).await.unwrap()
}

async fn run(program: &str, server: &str, words: &[&str]) -> Output {
    let mut command = Command::new(program);
    command.env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin").kill_on_drop(true);
    let ran = command.args(["-s", server, "-a", "ada"]).args(words).output();
    let ran = tokio::time::timeout(Duration::from_secs(60), ran).await.expect("it ends");
    ran.unwrap_or_else(|error| panic!("{program} (package diod) cannot be run: {error}"))
}

async fn check(server: &str) {
    let said = |output: Output| {
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(said(run("diodcat", server, &["hello"]).await), "hello, ada\n");
    assert_eq!(said(run("diodcat", server, &["sub/page"]).await), "two\n");
    assert_eq!(said(run("diodcat", server, &["large"]).await), "0123456789abcde\n".repeat(20_000));
    let listed = said(run("diodls", server, &["/"]).await);
    for name in ["hello", "large", "never", "sub"] {
        assert!(listed.contains(name), "{listed}");
    }
    assert!(!run("diodcat", server, &["absent"]).await.status.success());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_clients_of_diod_read_the_tree_by_a_unix_socket_and_by_tcp() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tree.sock");
    let _unix = served(&Address::Unix(path.clone())).await;
    check(path.to_str().unwrap()).await;
    let tcp = served(&"tcp:127.0.0.1:0".parse().unwrap()).await;
    let Address::Tcp(address) = tcp.address else { unreachable!("it listens by TCP") };
    check(&address.to_string()).await;
    assert!(Path::new(&path).exists());
    drop(_unix);
    assert!(!path.exists());
}
