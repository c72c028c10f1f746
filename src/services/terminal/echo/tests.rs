use proptest::prelude::*;

use super::*;

const LINE: &str = " printf x t1\n";

fn passed(said: &[u8], size: usize) -> Vec<u8> {
    let mut filter = EchoFilter::new(LINE);
    let mut left: Vec<u8> = said.chunks(size).flat_map(|piece| filter.pass(piece)).collect();
    left.extend(filter.finish());
    left
}

#[test]
fn the_echo_goes_and_the_rest_stays() {
    for (said, left) in [
        (&b"one printf x t1\r\ntwo"[..], &b"onetwo"[..]),
        (b" printf x t1\r\n", b""),
        (b"  printf x t1\r\n printf x t1\r\n$ ", b" $ "),
        (b"$  printf x t1\r\n\x1b[?2004l\rafter", b"$ after"),
        (b" printf x t1\r\n\x1b[?2004", b"\x1b[?2004"),
        (b" printf x t2\r\n printf x t1", b" printf x t2\r\n printf x t1"),
    ] {
        for size in 1..=said.len() {
            assert_eq!(passed(said, size).escape_ascii().to_string(), left.escape_ascii().to_string(), "{size}");
        }
    }
}

proptest! {
    #[test]
    fn an_echo_anywhere_in_any_pieces_leaves_the_output_as_it_was(
        output in proptest::collection::vec(prop_oneof![any::<u8>(), Just(b' '), Just(b'p'), Just(b'\r')], 0..60),
        at in 0usize..61,
        size in 1usize..20,
    ) {
        let (before, after) = output.split_at(at.min(output.len()));
        prop_assume!(!after.starts_with(PASTE_OFF));
        let said = [before, b" printf x t1\r\n", after].concat();
        prop_assert_eq!(passed(&said, size), output);
    }
}
