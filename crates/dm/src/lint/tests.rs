use super::*;

#[test]
fn row_119_a_scene_has_two_to_four_sentences() {
    let verdicts = ["One.", "One. Two.", "A. B! C? D.", "A. B. C. D. E. F."].map(|text| scene(text).is_ok());
    assert_eq!(verdicts, [false, true, true, false]);
    assert!(scene("天黑了。风停了。").is_ok());
}

#[test]
fn row_121_nobody_speaks_for_the_player() {
    for (text, lawful) in [
        ("You decide to flee.", false),
        ("You quickly agree with him.", false),
        ("\"I will pay,\" you tell him.", false),
        ("Ann steps up. \"I will pay,\" Ann says at last.", false),
        ("你决定逃跑。", false),
        ("The door opens. Salt blows in.", true),
        ("\"Who goes there?\" calls the guard.", true),
        ("You call \"open the gate\" and the gate stays shut.", true),
    ] {
        assert_eq!(agency(text, "[ASK]{open the gate}", "Ann").is_empty(), lawful, "{text}");
    }
}

#[test]
fn each_pattern_of_agency_has_a_hit_and_a_miss() {
    let cases = [
        ("decides", "You reluctantly consent.", "They reluctantly consent."),
        ("says", "You whisper a name.", "Voices whisper a name."),
        ("acts", "You draw the knife.", "Clouds draw near."),
        ("compelled", "You find yourself on the stairs.", "The keeper finds the stairs."),
        ("character", "Your heart knows the answer.", "Your heart beats."),
        ("without", "Without hesitation, you go.", "Without hesitation, the guard goes."),
        ("chinese", "你同意了。", "他同意了。"),
    ];
    assert_eq!(cases.map(|(name, ..)| name), AGENCY.map(|(name, _)| name), "every pattern has its case");
    for ((name, hit, miss), (_, pattern)) in cases.into_iter().zip(AGENCY) {
        let regex = Regex::new(pattern).unwrap();
        assert!(regex.is_match(hit) && !regex.is_match(miss), "{name}");
        assert!(!agency(hit, "", "Ann").is_empty() && agency(miss, "", "Ann").is_empty(), "{name}");
    }
    assert!(!agency("Ann agrees to it.", "", "Ann").is_empty() && agency("Jun agrees to it.", "", "Ann").is_empty());
    assert!(agency("You draw the knife.", "[ACT]{draw the knife}", "Ann").is_empty(), "the player said so");
}

fn strangers(text: &str, known: &[&str]) -> Vec<String> {
    unfiled(text, &Cartridge::default(), known).into_iter().map(|(_, name)| name).collect()
}

#[test]
fn row_104_a_name_without_a_page_is_noticed() {
    assert_eq!(
        strangers("Fog rises. Behind it stands Baron Vultan, waiting for @ghost.", &["Ann"]),
        ["Baron", "Vultan", "@ghost"]
    );
    assert!(strangers("Fog rises. Then Ann's lamp goes out.", &["Ann"]).is_empty());
}

#[test]
fn each_pattern_of_an_unfiled_name_has_a_hit_and_a_miss() {
    for (name, hit, miss) in [
        ("inside", "Behind it stands Vultan.", "Behind it stands Ann."),
        ("handle", "It is @ghost.", "It is a ghost."),
        ("shouted", "VULTAN waits.", "A DC of no use waits."),
        ("title", "Lord Vultan waits.", "Lord Ann waits."),
        ("introduced", "A man named vultan waits.", "A woman named ann waits."),
        ("apposition", "Vultan, the smith, waits.", "Fog, rain and salt wait."),
    ] {
        assert!(!strangers(hit, &["Ann", "Lord"]).is_empty(), "{name}: {hit}");
        assert!(strangers(miss, &["Ann", "Lord"]).is_empty(), "{name}: {miss} {:?}", strangers(miss, &["Ann", "Lord"]));
    }
    assert_eq!(INTRODUCED.len(), 3);
}

#[test]
fn each_pattern_of_claims_has_a_hit_and_a_miss() {
    let cases = [
        ("change", "Heat 0 -> 9 is what it is.", "The path -> the well."),
        ("hit points", "The wounds close, HP is now 99.", "Hit points are a matter for later."),
        ("hit points in words", "Ivy loses three hit points.", "The points of the knife are sharp."),
        ("throw", "The die shows d20(20)+5=25 vs DC 10.", "Somebody throws dice in the corner."),
        ("end of a quest", "Your quest is complete.", "A quest is seldom complete in a day."),
        ("quest", "quest The Dark Lamp: done.", "A quest is never done alone."),
    ];
    assert_eq!(cases.map(|(name, ..)| name), CLAIMS.map(|(name, _)| name), "every pattern has its case");
    let world = crate::tests::brinewick();
    for (name, hit, miss) in cases {
        assert!(!claims(hit, &world).is_empty() && claims(miss, &world).is_empty(), "{name}");
    }
    for (text, lawful) in [
        ("The quest of the Dark Lamp is complete.", false),
        ("The quest for the lamp has been fulfilled.", false),
        ("With that you completed the quest.", false),
        ("A keeper's quest is a lamp, and the lamp is out.", true),
        ("The boats are finished; nobody speaks of a quest.", true),
        ("The Heat is 4 now.", false),
        ("Heat rises to 9.", false),
        ("Heat rises to three.", false),
        ("tide 7", false),
        ("9 boats went out.", true),
        ("The tide is high.", true),
    ] {
        assert_eq!(claims(text, &world).is_empty(), lawful, "a level of the world with a figure: {text}");
    }
}
