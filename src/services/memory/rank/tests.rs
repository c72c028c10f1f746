use super::*;
use acheron_base::words::words;

fn question(counts: &[(&str, usize)]) -> RankedQuestion {
    let counts: Vec<(String, usize)> = counts.iter().map(|(stem, count)| ((*stem).to_owned(), *count)).collect();
    RankedQuestion::new(&counts, 1000, 20.0)
}

#[test]
fn words_close_together_say_more_than_words_far_apart() {
    let asked = question(&[("ferri", 20), ("noon", 20)]);
    let far = format!("the ferry is here {} and noon is over", "and so on ".repeat(20));
    let near = format!("it is here {} the ferry leaves at noon", "and so on ".repeat(20));
    assert!(asked.points(&[], &words(&near)) > asked.points(&[], &words(&far)));
    assert_eq!(asked.points(&[], &[]), 0.0);
}

#[test]
fn a_rare_word_says_more_and_so_does_the_name() {
    let asked = question(&[("boat", 500), ("heron", 2)]);
    assert!(asked.points(&[], &words("a heron")) > asked.points(&[], &words("a boat")));
    assert!(asked.points(&words("heron"), &words("a boat")) > asked.points(&[], &words("a boat")));
}

#[test]
fn a_word_that_often_stands_near_stands_in_for_one_that_is_missing() {
    let filler = |number: usize| words(&format!("the weather of day {number} was fine and the market was full"));
    let texts: Vec<Stems> =
        ["Ann", "Bob", "Eve"].iter().map(|name| words(&format!("{name} rides the tram, a fine commute"))).collect();
    let background = Background::of(&(0..100).map(filler).chain(texts.clone()).collect::<Vec<_>>());
    let relations = related("commut", &texts, &background);
    assert!(relations.contains_key("tram"), "{relations:?}");
    assert!(!relations.contains_key("ann") && !relations.contains_key("fine"), "{relations:?}");
    let mut asked = question(&[("commut", 3), ("zoe", 5)]);
    let (tram, cat) = (words("Zoe rides the tram"), words("Zoe has one cat"));
    assert_eq!(asked.points(&[], &tram).total_cmp(&asked.points(&[], &cat)), std::cmp::Ordering::Equal);
    asked.relate("commut", &relations);
    assert!(asked.points(&[], &tram) > asked.points(&[], &cat));
    assert!(
        asked.points(&[], &words("Zoe has a long commute")) > asked.points(&[], &tram),
        "the word itself says more"
    );
}
