//! The whole tree, and the one door into it.

use std::sync::{Arc, Weak};
use std::time::SystemTime;

use bytes::Bytes;

use super::{Access, Answer, Caller, Dir, File, Handle, Holdings, Kind, Node, Open, STARTED};
use acheron_base::{Code, Error, Result};

/// Decides who may do what. Asked at every opening; it fails closed.
pub trait AccessControl: Send + Sync {
    fn check(&self, caller: &Caller, action: Access, path: &str) -> Result<()>;

    /// Whether `path` is there at all for this caller, when the tree is walked from inside. A process finds its view
    /// cut by the mount namespace it lives in.
    fn sees(&self, caller: &Caller, path: &str) -> bool;

    /// The same of a file or a link: it is there for itself alone, and not as the way to something else.
    fn sees_file(&self, caller: &Caller, path: &str) -> bool {
        self.sees(caller, path)
    }

    /// Whether nothing at all is hidden from this caller, so that it need not be asked for each name.
    fn sees_all(&self, _caller: &Caller) -> bool {
        false
    }

    /// Whether something below `path` is denied to this caller, so that it must stay where it is.
    fn divided(&self, _caller: &Caller, _path: &str) -> bool {
        false
    }
}

#[derive(Clone)]
pub struct Tree {
    root: Arc<dyn Dir>,
    access: Arc<dyn AccessControl>,
    holdings: Arc<Holdings>,
    started: SystemTime,
}

/// A tree that this reference does not keep alive. What stands in a tree holds this one, since the tree holds it.
#[derive(Clone)]
pub struct WeakTree {
    root: Weak<dyn Dir>,
    access: Arc<dyn AccessControl>,
    holdings: Arc<Holdings>,
    started: SystemTime,
}

impl WeakTree {
    /// The tree, unless its last owner has dropped it.
    pub fn upgrade(&self) -> Option<Tree> {
        let root = self.root.upgrade()?;
        Some(Tree { root, access: self.access.clone(), holdings: self.holdings.clone(), started: self.started })
    }
}

/// A name in a listing.
pub struct Entry {
    pub path: String,
    pub node: Node,
}

/// Where a path leads, or would lead.
pub struct Standing {
    /// Without links.
    pub path: String,
    /// What stands there, or why nothing was found.
    pub node: Result<Node>,
}

/// How many links one path may lead through.
const LINKS: usize = 16;

impl Tree {
    pub fn new(root: Arc<dyn Dir>, access: Arc<dyn AccessControl>) -> Self {
        Tree { root, access, holdings: Arc::default(), started: STARTED }
    }

    /// The same tree, made at this time: what has no time of its own shows it.
    pub fn started_at(self, started: SystemTime) -> Self {
        Tree { started, ..self }
    }

    /// The time that is shown of something that was changed then.
    pub fn shown_time(&self, changed: SystemTime) -> SystemTime {
        if changed == STARTED { self.started } else { changed }
    }

    pub fn root(&self) -> Arc<dyn Dir> {
        self.root.clone()
    }

    /// The same tree, not kept alive.
    pub fn downgrade(&self) -> WeakTree {
        let (access, holdings) = (self.access.clone(), self.holdings.clone());
        WeakTree { root: Arc::downgrade(&self.root), access, holdings, started: self.started }
    }

    /// What callers keep in open files.
    pub fn holdings(&self) -> &Arc<Holdings> {
        &self.holdings
    }

    /// Opens `node`, which stands at `path`, if the caller may.
    pub fn open(&self, caller: &Caller, node: &Node, path: &str, how: Open) -> Result<Box<dyn Handle>> {
        let Node::File(file) = node else {
            return Err(Error::new(Code::Os(libc::EISDIR), format!("`{path}` is a directory")));
        };
        self.may_open(caller, file.kind(), file.mode(), path, how)?;
        Ok(self.holdings.counted(caller, file.kind(), file.open(caller, how)?))
    }

    fn may_open(&self, caller: &Caller, kind: Kind, mode: u16, path: &str, how: Open) -> Result<()> {
        if how.read {
            if mode & 0o400 == 0 {
                return Err(Error::forbidden(format!("`{path}` cannot be read")));
            }
            self.access.check(caller, Access::Read, path)?;
        }
        if how.write {
            if mode & 0o200 == 0 {
                return Err(Error::forbidden(format!("`{path}` cannot be written")));
            }
            self.access.check(caller, writing(kind), path)?;
        }
        Ok(())
    }

    /// Whether `caller` may write the file at `path`.
    pub fn may_write(&self, caller: &Caller, file: &dyn File, path: &str) -> Result<()> {
        self.access.check(caller, writing(file.kind()), path)
    }

    /// Whether `caller` may do that at `path`.
    pub fn may(&self, caller: &Caller, action: Access, path: &str) -> Result<()> {
        self.access.check(caller, action, path)
    }

    /// Whether what stands at `path` may be moved: not away from rules for what lies in it.
    pub fn may_move(&self, caller: &Caller, path: &str) -> Result<()> {
        match self.access.divided(caller, path) {
            true => Err(Error::forbidden(format!("{path} holds something that a rule denies, and stays where it is"))),
            false => Ok(()),
        }
    }

    /// Whether `path` is there at all for `caller`: a directory, or what it may be.
    pub fn sees(&self, caller: &Caller, path: &str) -> bool {
        self.access.sees(caller, path)
    }

    /// Whether a file or a link at `path` is there at all for `caller`.
    pub fn sees_file(&self, caller: &Caller, path: &str) -> bool {
        self.access.sees_file(caller, path)
    }

    /// Whether nothing at all is hidden from `caller`.
    pub fn sees_all(&self, caller: &Caller) -> bool {
        self.access.sees_all(caller)
    }

    fn shows(&self, caller: &Caller, path: &str, node: &Node) -> bool {
        match node {
            Node::Dir(_) => self.access.sees(caller, path),
            _ => self.access.sees_file(caller, path),
        }
    }

    /// Whether `caller` may make, change or remove what is called `path`, which stands there or not. Asked before anything
    /// is looked for: a name that is hidden is refused as one that is not there.
    pub fn may_change(&self, caller: &Caller, path: &str) -> Result<()> {
        self.access.check(caller, Access::Write, path)
    }

    /// Follows `path`, through links, to its node; returns the path where that really stands.
    pub fn find(&self, caller: &Caller, path: &str) -> Result<(String, Node)> {
        let standing = self.standing(caller, path)?;
        Ok((standing.path, standing.node?))
    }

    /// Follows `path`, through links, as far as the caller sees. A step that it may not see is as one that is not there:
    /// neither says more than the other.
    pub fn standing(&self, caller: &Caller, path: &str) -> Result<Standing> {
        let mut wanted: Vec<String> = names(path)?.rev().map(str::to_owned).collect();
        let mut at: Vec<(String, Node)> = Vec::new();
        let mut links = 0;
        while let Some(name) = wanted.pop() {
            if name == ".." {
                at.pop();
                continue;
            }
            let dir = match at.last() {
                None => self.root.clone(),
                Some((_, Node::Dir(dir))) => dir.clone(),
                Some((at, _)) => return Err(not_a_directory(at)),
            };
            let here = format!("{}/{name}", at.last().map_or("", |(path, _)| path));
            let Some(node) = dir.lookup(&name).filter(|node| self.shows(caller, &here, node)) else {
                let node = Err(not_found(&here));
                let rest = wanted.iter().rev().take_while(|name| *name != "..");
                return Ok(Standing { path: rest.fold(here, |path, name| format!("{path}/{name}")), node });
            };
            if let Node::Link(link) = &node {
                links += 1;
                if links > LINKS {
                    return Err(Error::new(Code::Os(libc::ELOOP), format!("`{path}` leads through too many links")));
                }
                let target = link.target(caller)?;
                if target.starts_with('/') {
                    at.clear();
                }
                wanted.extend(target.split('/').rev().filter(|it| !it.is_empty() && *it != ".").map(str::to_owned));
                continue;
            }
            at.push((here, node));
        }
        let (path, node) = at.pop().unwrap_or_else(|| ("/".to_owned(), Node::Dir(self.root.clone())));
        Ok(Standing { path, node: Ok(node) })
    }

    pub fn open_path(&self, caller: &Caller, path: &str, how: Open) -> Result<Box<dyn Handle>> {
        let (path, node) = self.find(caller, path)?;
        self.open(caller, &node, &path, how)
    }

    /// Reads the file at `path` to its end, waiting as a reader of the mount would.
    pub async fn read(&self, caller: &Caller, path: &str) -> Result<Bytes> {
        let handle = self.open_path(caller, path, Open::READ)?;
        read_to_end(&*handle, 0, usize::MAX).await
    }

    /// Writes `data` to the file at `path`, as `echo >` would.
    pub async fn write(&self, caller: &Caller, path: &str, data: &[u8]) -> Result<()> {
        let handle = self.open_path(caller, path, Open::WRITE)?;
        let written = async {
            handle.write(0, data).wait().await?;
            handle.flush(true).wait().await
        };
        let written = written.await;
        handle.closed();
        written
    }

    /// Writes `data` to the control file at `path` and reads the answer, as a private conversation would.
    pub async fn ask(&self, caller: &Caller, path: &str, data: &[u8]) -> Result<Bytes> {
        let handle = self.open_path(caller, path, Open::BOTH)?;
        handle.write(0, data).wait().await?;
        handle.flush(true).wait().await?;
        let answer = read_to_end(&*handle, data.len() as u64, usize::MAX).await;
        handle.closed();
        answer
    }

    /// The names in the directory at `path` that the caller may see.
    pub fn list(&self, caller: &Caller, path: &str) -> Result<Vec<Entry>> {
        self.list_first(caller, path, usize::MAX)
    }

    /// The first `most` of them.
    pub fn list_first(&self, caller: &Caller, path: &str, most: usize) -> Result<Vec<Entry>> {
        let (path, node) = self.find(caller, path)?;
        let Node::Dir(dir) = node else { return Err(not_a_directory(&path)) };
        let under = if path == "/" { "" } else { &path };
        let seen = |(name, node): (String, Node)| {
            let path = format!("{under}/{name}");
            self.shows(caller, &path, &node).then_some(Entry { path, node })
        };
        let first = dir.first(most);
        let cut = first.len() == most;
        let found: Vec<Entry> = first.into_iter().filter_map(seen).collect();
        match cut && found.len() < most {
            // Some of the first are hidden from this caller, so that others come up.
            true => Ok(dir.list().into_iter().filter_map(seen).take(most).collect()),
            false => Ok(found),
        }
    }
}

/// What writing a file of this kind is.
fn writing(kind: Kind) -> Access {
    match kind {
        Kind::Control | Kind::Message => Access::Invoke,
        _ => Access::Write,
    }
}

/// Reads from `begin` to the end of the pass, at most `limit` bytes.
pub async fn read_to_end(handle: &dyn Handle, begin: u64, limit: usize) -> Result<Bytes> {
    const CHUNK: usize = 128 * 1024;

    let mut bytes = Vec::new();
    while bytes.len() < limit {
        let size = CHUNK.min(limit - bytes.len());
        let answer: Answer<Bytes> = handle.read(begin + bytes.len() as u64, size);
        let chunk = answer.wait().await?;
        if chunk.is_empty() {
            break;
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes.into())
}

/// The names of `path` in order; `.` is skipped, `..` stays.
fn names(path: &str) -> Result<impl DoubleEndedIterator<Item = &str>> {
    if path.contains('\0') {
        return Err(Error::invalid("a path has no NUL in it"));
    }
    Ok(path.split('/').filter(|name| !name.is_empty() && *name != "."))
}

/// `path` from the root, without `.`, `..` and doubled slashes; a leading slash is optional. `..` stops at the root.
pub fn normal(path: &str) -> Result<String> {
    let mut kept: Vec<&str> = Vec::new();
    for name in names(path)? {
        match name {
            ".." => _ = kept.pop(),
            name => kept.push(name),
        }
    }
    Ok(format!("/{}", kept.join("/")))
}

fn not_found(path: &str) -> Error {
    Error::not_found(format!("there is no `{path}`"))
}

fn not_a_directory(path: &str) -> Error {
    Error::new(Code::Os(libc::ENOTDIR), format!("`{path}` is not a directory"))
}

#[cfg(test)]
mod tests {
    use super::super::{Link, Listing, text};
    use super::*;

    struct OwnOnly;

    impl AccessControl for OwnOnly {
        fn check(&self, caller: &Caller, _action: Access, path: &str) -> Result<()> {
            match self.sees(caller, path) {
                true => Ok(()),
                false => Err(Error::forbidden("no")),
            }
        }

        fn sees(&self, caller: &Caller, path: &str) -> bool {
            match caller.identity.name() {
                "operator" => true,
                id => ["/agents", "/agents/self"].contains(&path) || path.starts_with(&format!("/agents/{id}")),
            }
        }
    }

    struct Own;

    impl Link for Own {
        fn target(&self, caller: &Caller) -> Result<String> {
            match caller.identity.name() {
                "operator" => Ok("ada".to_owned()),
                id => Ok(id.to_owned()),
            }
        }
    }

    fn tree() -> Tree {
        let home = |word: &'static str| Listing::default().file("who", text(word));
        let agents = Listing::default().dir("ada", home("ada")).dir("bob", home("bob")).link("self", Own);
        Tree::new(Arc::new(Listing::default().dir("agents", agents).file("secret", text("x"))), Arc::new(OwnOnly))
    }

    #[tokio::test]
    async fn self_leads_each_to_its_own() {
        let tree = tree();
        assert_eq!(tree.read(&Caller::named("bob"), "agents/self/who").await.unwrap(), "bob");
        assert_eq!(tree.read(&Caller::named("operator"), "/agents/self/../bob/./who").await.unwrap(), "bob");
        assert_eq!(tree.find(&Caller::named("bob"), "agents/self/who").unwrap().0, "/agents/bob/who");
    }

    #[tokio::test]
    async fn what_one_may_not_see_is_absent() {
        let tree = tree();
        let names = |caller: &Caller, path: &str| -> Vec<String> {
            tree.list(caller, path).unwrap().into_iter().map(|entry| entry.path).collect()
        };
        assert_eq!(names(&Caller::named("bob"), "/"), ["/agents"]);
        assert_eq!(names(&Caller::named("operator"), "/"), ["/agents", "/secret"]);
        assert_eq!(tree.read(&Caller::named("bob"), "/agents/ada/who").await.unwrap_err().errno(), libc::ENOENT);
        assert_eq!(tree.write(&Caller::named("operator"), "/secret", b"y").await.unwrap_err().errno(), libc::EACCES);
    }

    /// A link that is hidden is not there, wherever it leads; one that is seen leads no further than its reader sees.
    #[test]
    fn a_link_shows_nothing_of_what_is_hidden() {
        struct To(&'static str);
        impl Link for To {
            fn target(&self, _caller: &Caller) -> Result<String> {
                Ok(self.0.to_owned())
            }
        }
        let bob = Listing::default()
            .file("who", text("bob"))
            .link("to-ada", To("../ada/who"))
            .link("to-none", To("/agents/ada/none"))
            .link("chain", To("to-ada"));
        let ada = Listing::default().file("who", text("ada")).link("to-bob", To("../bob/who"));
        let agents = Listing::default().dir("ada", ada).dir("bob", bob).link("secret", To("bob/who"));
        let tree = Tree::new(Arc::new(Listing::default().dir("agents", agents)), Arc::new(OwnOnly));
        for (path, expected) in [
            ("/agents/bob/to-ada", "/agents/ada/who"),
            ("/agents/bob/chain", "/agents/ada/who"),
            ("/agents/bob/to-none", "/agents/ada/none"),
            ("/agents/bob/to-ada/x/../y", "/agents/ada/who/x"),
            ("/agents/ada/to-bob", "/agents/ada/to-bob"),
            ("/agents/secret", "/agents/secret"),
            ("/agents/none", "/agents/none"),
        ] {
            let standing = tree.standing(&Caller::named("bob"), path).unwrap();
            assert_eq!((standing.path.as_str(), standing.node.is_err()), (expected, true), "{path}");
        }
    }

    #[test]
    fn a_weak_tree_ends_with_the_last_owner_of_the_tree() {
        let tree = tree();
        let weak = tree.downgrade();
        let other = weak.upgrade().unwrap();
        drop(tree);
        assert!(weak.upgrade().is_some());
        drop(other);
        assert!(weak.upgrade().is_none());
    }

    #[test]
    fn paths_are_made_normal() {
        for (path, expected) in
            [("", "/"), ("a//b/", "/a/b"), ("/a/../../b", "/b"), ("./a/.", "/a"), ("/agents/self/", "/agents/self")]
        {
            assert_eq!(normal(path).unwrap(), expected);
        }
        assert!(normal("a\0b").is_err());
    }
}
