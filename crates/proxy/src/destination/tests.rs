use proptest::prelude::*;

use super::*;

#[test]
fn a_destination_is_read_as_clients_write_it() {
    let read = |text: &str| Destination::parse(text, Some(443)).map(|to| to.to_string());
    assert_eq!(read("API.GitHub.com:443").unwrap(), "api.github.com:443");
    assert_eq!(read("api.github.com.").unwrap(), "api.github.com:443");
    assert_eq!(read("127.0.0.1:80").unwrap(), "127.0.0.1:80");
    assert_eq!(read("[::1]:80").unwrap(), "[::1]:80");
    assert_eq!(read("::1").unwrap(), "[::1]:443");
    assert_eq!(read("[fe80::1]").unwrap(), "[fe80::1]:443");
}

#[test]
fn what_a_resolver_could_take_for_something_else_is_refused() {
    let bad = [
        "",
        ":443",
        "a..b:443",
        ".a:443",
        "a b:443",
        "127.1:443",
        "2130706433:443",
        "0x7f000001:443",
        "a.0x7f:443",
        "0177.0.0.1:443",
        "user@host:443",
        "host:0",
        "host:65536",
        "host:",
        "host:+80",
        "host:8 0",
        "[::1:443",
        "[::1]x:443",
        "bücher.example:443",
        "a\0b:443",
        "host:443/path",
        "%6c:1",
    ];
    for text in bad {
        assert!(Destination::parse(text, Some(443)).is_err(), "{text:?}");
    }
    assert!(Destination::parse("host", None).is_err());
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused_and_what_is_read_is_written_again(text in ".{0,40}") {
        if let Ok(to) = Destination::parse(&text, Some(443)) {
            prop_assert_eq!(Destination::parse(&to.to_string(), None).unwrap(), to);
        }
    }

    #[test]
    fn names_are_read(name in "[a-z][a-z0-9-]{0,20}(\\.[a-z][a-z0-9-]{0,10}){0,4}", port in 1u16..) {
        let to = Destination::parse(&format!("{name}:{port}"), None).unwrap();
        prop_assert_eq!(to.to_string(), format!("{name}:{port}"));
    }
}
