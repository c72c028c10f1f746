use super::*;
use proptest::prelude::*;

#[test]
fn messages_have_the_layout_of_the_protocol() {
    let version = Request::Version { msize: 8192, version: "9P2000.L".to_owned() };
    assert_eq!(version.write(NO_TAG), b"\x15\0\0\0\x64\xff\xff\0\x20\0\0\x08\09P2000.L");
    let walk = Request::Walk { fid: 1, new_fid: 2, names: vec!["a".to_owned(), "bc".to_owned()] };
    assert_eq!(walk.write(3), b"\x18\0\0\0\x6e\x03\0\x01\0\0\0\x02\0\0\0\x02\0\x01\0a\x02\0bc");
    let error = Reply::Lerror { errno: 2 };
    assert_eq!(error.write(9), b"\x0b\0\0\0\x07\x09\0\x02\0\0\0");
}

fn body_of(message: &[u8]) -> (u8, Bytes) {
    (message[4], Bytes::copy_from_slice(&message[HEAD..]))
}

#[test]
fn what_is_short_long_or_not_text_is_malformed() {
    let whole = Request::Walk { fid: 1, new_fid: 2, names: vec!["é".to_owned()] }.write(1);
    let (number, body) = body_of(&whole);
    for length in 0..body.len() {
        assert_eq!(Request::read(number, body.slice(..length)), Some(Err(Malformed)));
    }
    let longer = [&body[..], b"x"].concat();
    assert_eq!(Request::read(number, longer.into()), Some(Err(Malformed)));
    let not_text = [&body[..body.len() - 1], b"\xff"].concat();
    assert_eq!(Request::read(number, not_text.into()), Some(Err(Malformed)));
    assert_eq!(Request::read(99, Bytes::new()), None);
    let endless = Bytes::from_static(b"\x01\0\0\0\0\0\0\0\0\0\0\0\xff\xff\xff\xffx");
    assert_eq!(Request::read(118, endless), Some(Err(Malformed)), "the length of the data is a lie");
}

proptest! {
    #[test]
    fn any_bytes_are_a_message_or_not_and_a_message_is_written_as_it_was(number: u8, body: Vec<u8>) {
        if let Some(Ok(message)) = Request::read(number, Bytes::from(body.clone())) {
            let (again, written) = body_of(&message.write(7));
            prop_assert_eq!((again, &written[..]), (number, &body[..]));
        }
        if let Some(Ok(message)) = Reply::read(number, Bytes::from(body.clone())) {
            let (again, written) = body_of(&message.write(7));
            prop_assert_eq!((again, &written[..]), (number, &body[..]));
        }
        _ = dir_entries(Bytes::from(body));
    }
}
