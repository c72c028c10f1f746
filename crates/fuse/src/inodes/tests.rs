use super::*;
use acheron_vfs::{Listing, text};

fn inodes() -> Arc<Inodes> {
    Inodes::new(Node::dir(Listing::default()), Arc::default())
}

#[test]
fn a_number_belongs_to_a_path_and_not_to_a_run() {
    let (one, other) = (inodes(), inodes());
    let node = Node::file(text("x"));
    assert_eq!(one.remember("/a/b", &node), other.number("/a/b", &Node::file(text("y"))));
    assert_ne!(one.number("/a/b", &node), one.number("/a/c", &node));
    assert_ne!(one.number("/a/b", &node), one.number("/a/b", &Node::dir(Listing::default())));
    assert_eq!(one.number("/", &node), ROOT);
}

#[test]
fn paths_with_the_same_hash_get_numbers_of_their_own() {
    let inodes = inodes();
    let node = Node::file(text("x"));
    let taken = hash("/b", b'f') & !MIRRORED;
    inodes.record(taken, "/somewhere/else".into(), node.clone());
    assert_eq!(inodes.remember("/b", &node), taken.wrapping_add(1));
    assert_eq!(inodes.number("/b", &node), taken.wrapping_add(1));
}

#[test]
fn what_the_kernel_forgets_is_forgotten() {
    let inodes = inodes();
    let node = Node::file(text("x"));
    let number = inodes.remember("/a", &node);
    inodes.remember("/a", &node);
    inodes.forget(number, 1);
    assert_eq!(&*inodes.get(number).unwrap().path, "/a");
    inodes.forget(number, 1);
    assert_eq!(inodes.get(number).err().unwrap().errno(), libc::ESTALE);
    inodes.forget(ROOT, 99);
    assert_eq!(inodes.len(), 1);
}

#[test]
fn the_bytes_of_a_replaced_node_are_not_kept() {
    let inodes = inodes();
    let number = inodes.remember("/a", &Node::file(text("x")));
    assert!(inodes.cache_is_valid(number));
    inodes.remember("/a", &Node::file(text("y")));
    assert!(!inodes.cache_is_valid(number));
    assert!(inodes.cache_is_valid(number));
}

#[test]
fn a_number_below_a_directory_that_is_replaced_leads_into_the_new_one() {
    let service = |content: &str| {
        let go = Node::file(text(content.to_owned()));
        let control = Node::dir(Listing::default().with("go", go.clone()));
        (Node::dir(Listing::default().with("control", control.clone())), control, go)
    };
    let (inodes, one, two) = (inodes(), service("one"), service("two"));
    inodes.remember("/slow", &one.0);
    inodes.remember("/slow/control", &one.1);
    let number = inodes.remember("/slow/control/go", &one.2);
    let beside = inodes.remember("/slower", &one.2);
    inodes.remember("/slow", &two.0);
    assert!(same(&inodes.get(number).unwrap().node, &two.2));
    assert!(!inodes.cache_is_valid(number));
    assert!(same(&inodes.get(beside).unwrap().node, &one.2));
    inodes.forget(number, 1);
    assert!(!inodes.entries.contains_key(&hash("/slow/control", b'd')), "nothing is kept of what is forgotten");
}
