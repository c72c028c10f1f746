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
            "admin" => true,
            id => ["/users", "/users/me"].contains(&path) || path.starts_with(&format!("/users/{id}")),
        }
    }
}

struct Own;

impl Link for Own {
    fn target(&self, caller: &Caller) -> Result<String> {
        match caller.identity.name() {
            "admin" => Ok("ada".to_owned()),
            id => Ok(id.to_owned()),
        }
    }
}

fn tree() -> Tree {
    let home = |word: &'static str| Listing::default().file("who", text(word));
    let users = Listing::default().dir("ada", home("ada")).dir("bob", home("bob")).link("me", Own);
    Tree::new(Arc::new(Listing::default().dir("users", users).file("secret", text("x"))), Arc::new(OwnOnly))
}

#[tokio::test]
async fn a_link_may_differ_between_callers() {
    let tree = tree();
    assert_eq!(tree.read(&Caller::named("bob"), "users/me/who").await.unwrap(), "bob");
    assert_eq!(tree.read(&Caller::named("admin"), "/users/me/../bob/./who").await.unwrap(), "bob");
    assert_eq!(tree.find(&Caller::named("bob"), "users/me/who").unwrap().0, "/users/bob/who");
}

#[tokio::test]
async fn a_hidden_name_is_absent() {
    let tree = tree();
    let names = |caller: &Caller, path: &str| -> Vec<String> {
        tree.list(caller, path).unwrap().into_iter().map(|entry| entry.path).collect()
    };
    assert_eq!(names(&Caller::named("bob"), "/"), ["/users"]);
    assert_eq!(names(&Caller::named("admin"), "/"), ["/secret", "/users"]);
    assert_eq!(tree.read(&Caller::named("bob"), "/users/ada/who").await.unwrap_err().errno(), libc::ENOENT);
    assert_eq!(tree.write(&Caller::named("admin"), "/secret", b"y").await.unwrap_err().errno(), libc::EACCES);
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
        .link("to-none", To("/users/ada/none"))
        .link("chain", To("to-ada"));
    let ada = Listing::default().file("who", text("ada")).link("to-bob", To("../bob/who"));
    let users = Listing::default().dir("ada", ada).dir("bob", bob).link("secret", To("bob/who"));
    let tree = Tree::new(Arc::new(Listing::default().dir("users", users)), Arc::new(OwnOnly));
    for (path, expected) in [
        ("/users/bob/to-ada", "/users/ada/who"),
        ("/users/bob/chain", "/users/ada/who"),
        ("/users/bob/to-none", "/users/ada/none"),
        ("/users/bob/to-ada/x/../y", "/users/ada/who/x"),
        ("/users/ada/to-bob", "/users/ada/to-bob"),
        ("/users/secret", "/users/secret"),
        ("/users/none", "/users/none"),
    ] {
        let resolve = tree.resolve(&Caller::named("bob"), path).unwrap();
        assert_eq!((resolve.path.as_str(), resolve.node.is_err()), (expected, true), "{path}");
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
        [("", "/"), ("a//b/", "/a/b"), ("/a/../../b", "/b"), ("./a/.", "/a"), ("/users/me/", "/users/me")]
    {
        assert_eq!(normalize(path).unwrap(), expected);
    }
    assert!(normalize("a\0b").is_err());
}
