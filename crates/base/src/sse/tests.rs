use proptest::prelude::*;

use super::*;

fn shown(chunks: &[&[u8]]) -> String {
    let mut decoder = Decoder::default();
    let events: Vec<_> = chunks.iter().flat_map(|chunk| decoder.feed(chunk).unwrap()).collect();
    events.iter().map(|event| format!("{}|{}", event.name, event.data)).collect::<Vec<_>>().join(" ; ")
}

#[test]
fn events_are_read_by_the_rules() {
    for (stream, wanted) in [
        ("data: a\n\ndata: b\n\n", "|a ; |b"),
        ("event: x\ndata: a\ndata:b\n\n", "x|a\nb"),
        ("data: a\r\n\r\ndata: b\r\r", "|a ; |b"),
        (": a comment\n\ndata: a\n\n", "|a"),
        ("event: lonely\n\ndata: a\n\n", "|a"),
        ("data: never ended", ""),
        ("data\n\n", "|"),
        ("\u{feff}data: a\n\n", "|a"),
    ] {
        assert_eq!(shown(&[stream.as_bytes()]), wanted, "{stream:?}");
    }
}

#[test]
fn a_character_may_be_cut_in_two() {
    let stream = "data: Σχῆμα 🜁\n\n".as_bytes();
    let bytes: Vec<&[u8]> = stream.chunks(1).collect();
    assert_eq!(shown(&bytes), "|Σχῆμα 🜁");
}

proptest! {
    #[test]
    fn where_the_chunks_are_cut_changes_nothing(stream in "(data: [a-zé]{0,5}|event: x|:|\r|\n|\r\n){0,30}", cuts in prop::collection::vec(1usize..7, 1..40)) {
        let mut pieces = Vec::new();
        let mut rest = stream.as_bytes();
        let mut cuts = cuts.iter().cycle();
        while !rest.is_empty() {
            let (piece, tail) = rest.split_at((*cuts.next().unwrap()).min(rest.len()));
            pieces.push(piece);
            rest = tail;
        }
        prop_assert_eq!(shown(&pieces), shown(&[stream.as_bytes()]));
    }
}
