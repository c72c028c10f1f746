//! Mounts a tree with one file that waits: `waiting <empty directory>`. Reading `door` waits until a line is typed.

use std::sync::Arc;

use tokio::io::{AsyncBufReadExt, BufReader, stdin};
use tokio::sync::watch;

use acheron_base::{Error, Result};
use acheron_fuse::{Identify, Options, mount};
use acheron_vfs::{Access, AccessControl, Answer, Caller, Identity, Listing, Tree, waiting};

/// Every process may do everything.
struct Everyone;

impl AccessControl for Everyone {
    fn check(&self, _caller: &Caller, _action: Access, _path: &str) -> Result<()> {
        Ok(())
    }

    fn sees(&self, _caller: &Caller, _path: &str) -> bool {
        true
    }
}

impl Identify for Everyone {
    fn caller(&self, uid: u32, gid: u32, tid: u32) -> Caller {
        Caller { uid, gid, pid: tid, identity: Identity::named("anyone") }
    }
}

/// The tree: `door` is answered once the value behind `door` is true.
fn tree(door: watch::Receiver<bool>) -> Tree {
    let file = waiting(move |_caller| {
        let mut door = door.clone();
        Answer::later(async move {
            door.wait_for(|open| *open).await.map_err(|_| Error::unavailable("the door is gone"))?;
            Ok("open\n".into())
        })
    });
    Tree::new(Arc::new(Listing::default().file("door", file)), Arc::new(Everyone))
}

#[tokio::main]
async fn main() -> Result<()> {
    let directory = std::env::args_os().nth(1).ok_or_else(|| Error::invalid("usage: waiting <empty directory>"))?;
    let (open, door) = watch::channel(false);
    let runtime = tokio::runtime::Handle::current();
    let mount = mount(tree(door), Arc::new(Everyone), directory.as_ref(), runtime, &Options::default())?;
    println!("mounted on {}; press Enter to open the door", mount.mountpoint().display());
    let mut lines = BufReader::new(stdin()).lines();
    lines.next_line().await?;
    open.send_replace(true);
    println!("open; press Enter to unmount");
    lines.next_line().await?;
    mount.unmount().await
}
