use proptest::prelude::*;

use super::*;

fn long(bytes: &[u8]) -> Vec<u8> {
    [&u16::try_from(bytes.len()).unwrap().to_be_bytes(), bytes].concat()
}

fn names(names: &[(u8, &str)]) -> Vec<u8> {
    let list = names.iter().flat_map(|(kind, name)| [vec![*kind], long(name.as_bytes())].concat()).collect::<Vec<u8>>();
    [&0u16.to_be_bytes()[..], &long(&long(&list))].concat()
}

/// The message of a client with these extensions.
fn message(extensions: &[Vec<u8>]) -> Vec<u8> {
    let mut body = vec![3, 3];
    body.extend([7; 32]);
    body.extend([0]); // no session
    body.extend(long(&[0x13, 0x01]));
    body.extend([1, 0]);
    body.extend(long(&extensions.concat()));
    let length = u32::try_from(body.len()).unwrap().to_be_bytes();
    [&[1, length[1], length[2], length[3]], &body[..]].concat()
}

/// The message in records of this size.
fn records(message: &[u8], size: usize) -> Vec<u8> {
    message.chunks(size).flat_map(|part| [&[22, 3, 1], &long(part)[..]].concat()).collect()
}

/// The first message of a client that names this server.
pub fn hello(name: Option<&str>) -> Vec<u8> {
    records(&message(&name.map(|name| names(&[(0, name)])).into_iter().collect::<Vec<_>>()), 4096)
}

fn named(name: &str) -> ClientHello {
    ClientHello::Named(name.parse().unwrap())
}

#[test]
fn the_name_is_found_among_other_extensions_and_over_several_records() {
    let other = [&16u16.to_be_bytes()[..], &long(b"\0\x03\x02h2")].concat();
    let message = message(&[other.clone(), names(&[(0, "API.GitHub.com")]), other]);
    for size in [1, 3, 7, 100, 4096] {
        assert_eq!(ClientHello::read(&records(&message, size)), named("api.github.com"), "{size}");
    }
    let mut more = records(&message, 4096);
    more.extend(b"early data");
    assert_eq!(ClientHello::read(&more), named("api.github.com"));
}

#[test]
fn what_leaves_a_choice_to_the_server_is_broken() {
    let (name, read) = (names(&[(0, "a.example")]), |all: &[Vec<u8>]| ClientHello::read(&records(&message(all), 4096)));
    assert_eq!(read(&[]), ClientHello::Unnamed);
    assert_eq!(read(&[name.clone(), name.clone()]), ClientHello::Broken);
    for list in
        [&[(0, "a.example"), (0, "b.example")][..], &[(1, "a.example")], &[(0, "a b")], &[(0, "127.0.0.1")], &[]]
    {
        assert_eq!(read(&[names(list)]), ClientHello::Broken, "{list:?}");
    }
    let mut after = records(&message(&[name]), 4096);
    after[5] = 2; // a server's message
    assert_eq!(ClientHello::read(&after), ClientHello::Broken);
}

#[test]
fn other_protocols_are_not_tls() {
    for bytes in [&b"GET / HTTP/1.1\r\n"[..], b"SSH-2.0-x", b"\x80\x2e\x01\x03\x01", b"\x16\x02\x00"] {
        assert_eq!(ClientHello::read(bytes), ClientHello::NotTls);
    }
    assert_eq!(ClientHello::read(b""), ClientHello::Incomplete);
    assert_eq!(ClientHello::read(b"\x16"), ClientHello::Incomplete);
    assert_eq!(ClientHello::read(b"\x16\x03\x01\x00\x00"), ClientHello::Broken);
    assert_eq!(ClientHello::read(b"\x16\x03\x01\x00\x04\x01\xff\xff\xff"), ClientHello::Broken);
}

proptest! {
    #[test]
    fn a_part_of_a_message_is_incomplete_and_never_another_name(size in 1usize..300, cut in 0usize..1000) {
        let whole = records(&message(&[names(&[(0, "a.example")])]), size);
        let cut = cut.min(whole.len());
        let expected = if cut == whole.len() { named("a.example") } else { ClientHello::Incomplete };
        prop_assert_eq!(ClientHello::read(&whole[..cut]), expected);
    }

    #[test]
    fn any_bytes_are_read(bytes: Vec<u8>, at in 0usize..120, byte: u8) {
        ClientHello::read(&bytes);
        ClientHello::read(&[&[22, 3, 1][..], &bytes].concat());
        let mut changed = records(&message(&[names(&[(0, "a.example")])]), 4096);
        let at = at.min(changed.len() - 1);
        changed[at] = byte;
        ClientHello::read(&changed);
    }
}
