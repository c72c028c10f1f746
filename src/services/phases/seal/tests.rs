use super::*;

fn keys(fill: u8) -> SealKeys {
    SealKeys::read(&URL_SAFE_NO_PAD.encode([fill; KEY])).unwrap()
}

fn at(name: &str, position: u64, previous: Tag) -> LinePosition<'_> {
    LinePosition { what: "session", name, position, previous }
}

fn seal(place: &LinePosition, text: &str) -> (String, Tag) {
    keys(1).seal(place, text.as_bytes(), &|bytes| bytes.fill(7)).unwrap()
}

#[test]
fn what_is_sealed_opens_at_its_place() {
    let (line, tag) = seal(&at("s", 0, FIRST), "secret history");
    assert!(!line.contains("secret") && !line.starts_with('{'));
    assert_eq!(keys(1).open(&at("s", 0, FIRST), &line).unwrap(), (b"secret history".to_vec(), tag));
}

#[test]
fn a_line_opens_nowhere_else() {
    let (line, tag) = seal(&at("s", 0, FIRST), "x");
    for place in
        [at("t", 0, FIRST), at("s", 1, FIRST), at("s", 0, tag), LinePosition { what: "run", ..at("s", 0, FIRST) }]
    {
        let fault = keys(1).open(&place, &line).unwrap_err();
        assert!(fault.message.contains("its seal is broken"), "{fault}");
    }
}

#[test]
fn a_changed_line_does_not_open() {
    let (line, _) = seal(&at("s", 0, FIRST), "x");
    for place in 0..line.len() {
        let mut bytes = line.clone().into_bytes();
        bytes[place] = if bytes[place] == b'A' { b'B' } else { b'A' };
        let changed = String::from_utf8(bytes).unwrap();
        assert!(keys(1).open(&at("s", 0, FIRST), &changed).is_err(), "byte {place}");
    }
}

#[test]
fn the_wrong_key_is_named_and_not_the_data_blamed() {
    let (line, _) = seal(&at("s", 0, FIRST), "x");
    let fault = keys(2).open(&at("s", 0, FIRST), &line).unwrap_err();
    let id = keys(1).ids()[0].to_owned();
    let expected = format!(
        "line 1 of session s was sealed with the key {id}, which is not among ours; add its line to history.key"
    );
    assert_eq!(fault.message, expected);
}

#[test]
fn a_key_that_is_none_is_refused() {
    for (text, expected) in [
        ("", "the history key is empty"),
        ("# only words\n", "the history key is empty"),
        ("MTIzNDU2Nzg5MA==", "line 1 of the history key is not 32 bytes in base64"),
        ("\n!!!", "line 2 of the history key is not 32 bytes in base64"),
    ] {
        assert_eq!(SealKeys::read(text).unwrap_err().message, expected);
    }
}

#[test]
fn after_a_rotation_old_lines_still_open() {
    let (line, tag) = seal(&at("s", 0, FIRST), "old");
    let both =
        SealKeys::read(&format!("{}\n{}", URL_SAFE_NO_PAD.encode([1; KEY]), SealKeys::line(&|bytes| bytes.fill(3))))
            .unwrap();
    assert_eq!(both.open(&at("s", 0, FIRST), &line).unwrap().0, b"old");
    let (newer, _) = both.seal(&at("s", 1, tag), b"new", &|bytes| bytes.fill(9)).unwrap();
    assert!(newer.starts_with(&format!("v1.{}.", both.ids()[1])));
    assert!(keys(1).open(&at("s", 1, tag), &newer).is_err());
}

#[test]
fn keys_do_not_show_themselves() {
    assert_eq!(format!("{:?}", keys(1)), format!("[{:?}]", keys(1).ids()[0]));
}

proptest::proptest! {
    #[test]
    fn any_line_is_refused_without_a_panic(line in "\\PC{0,80}|v1\\.[a-f0-9]{8}\\.[A-Za-z0-9_-]{0,90}") {
        proptest::prop_assert!(keys(1).open(&at("s", 0, FIRST), &line).is_err());
    }
}
