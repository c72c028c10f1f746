//! Checks prose: its length, that it does not decide or speak for the player's character, and that every person in it has a page.

use std::sync::LazyLock;

use regex::Regex;

use crate::refs::normal;
use crate::world::Cartridge;

/// Sentences, by their ends. An abbreviation counts as an end; prose for a scene can do without.
pub fn sentences(text: &str) -> usize {
    let ends = text.split_inclusive(['.', '!', '?', '。', '！', '？']);
    ends.filter(|part| part.chars().any(char::is_alphanumeric)).count()
}

/// A scene has two to four sentences.
pub fn scene(text: &str) -> Result<(), String> {
    match sentences(text) {
        2..=4 => Ok(()),
        count => Err(format!("a scene has 2-4 sentences, this one has {count}")),
    }
}

static DECIDES: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let verbs = "decide|choose|agree|promise|resolve|vow|swear|confess|refuse|accept|think|believe|realise|realize|want|feel|remember";
    let says = "say|answer|reply|shout|whisper|tell|ask|mutter|speak";
    Regex::new(&format!(r"(?i)\byou\s+(?:\w+ly\s+)?(?:{verbs}|{says})\b|你(?:决定|选择|同意|说|回答|喊|想)")).ok()
});

static QUOTED: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r#"["“]([^"”]{1,400})["”]"#).ok());

/// Refuses prose that takes the character out of the player's hands. What the player typed may be repeated.
pub fn agency(text: &str, input: &str, pc: &str) -> Result<(), String> {
    if let Some(found) = DECIDES.as_ref().and_then(|regex| regex.find(text)) {
        return Err(format!("\"{}\" decides or speaks for the player's character", found.as_str()));
    }
    let said = normal(input);
    let pc = pc.trim();
    for quote in QUOTED.as_ref().into_iter().flat_map(|regex| regex.captures_iter(text)) {
        let (Some(whole), Some(inner)) = (quote.get(0), quote.get(1)) else { continue };
        let around: String =
            text[..whole.start()].chars().rev().take(40).collect::<Vec<_>>().into_iter().rev().collect();
        let after: String = text[whole.end()..].chars().take(40).collect();
        let of_pc = |part: &str| {
            let words = normal(part);
            words.split(' ').any(|word| word == "you") || (!pc.is_empty() && part.contains(pc))
        };
        if (of_pc(&around) || of_pc(&after)) && !said.contains(&normal(inner.as_str())) {
            return Err(format!("the player's character is made to say \"{}\"", crate::md::clip(inner.as_str(), 40)));
        }
    }
    Ok(())
}

/// Names in the prose without a page: capitalised words within a sentence, unknown handles.
pub fn unfiled(text: &str, world: &Cartridge, known: &[&str]) -> Vec<String> {
    let mut familiar: Vec<String> = known.iter().map(|text| normal(text)).collect();
    for object in &world.objects {
        familiar.push(normal(&object.name));
        familiar.extend(object.aliases.iter().map(|alias| normal(alias)));
        familiar.push(object.handle.trim_start_matches('@').replace('_', " "));
        familiar.extend(object.fields.get("location").cloned());
    }
    familiar.extend(world.files.get("CARTRIDGE.md").map(|text| normal(text)));
    let is_known = |word: &str| familiar.iter().any(|text| text.split(' ').any(|own| own == word));
    let mut found = Vec::new();
    let mut first = true;
    for word in text.split_whitespace() {
        let bare = word.trim_matches(|c: char| !c.is_alphanumeric() && c != '@');
        let bare = bare.strip_suffix("'s").or_else(|| bare.strip_suffix("’s")).unwrap_or(bare);
        let handle = bare.starts_with('@') && world.object(&bare.to_lowercase()).is_none();
        let capital = bare.chars().next().is_some_and(char::is_uppercase) && bare.chars().count() > 1;
        let shouted = bare.chars().all(|c| !c.is_lowercase());
        let stranger = capital && !first && !shouted && !is_known(&normal(bare)) && !COMMON.contains(&bare);
        if (handle || stranger) && !found.contains(&bare.to_owned()) {
            found.push(bare.to_owned());
        }
        first = word.ends_with(['.', '!', '?', ':', '"', '”', '—']) || word.starts_with(['"', '“']);
    }
    found
}

/// Capitalised without being anybody's name.
const COMMON: [&str; 20] = [
    "I'm",
    "I'll",
    "I've",
    "I'd",
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
    "Sunday",
    "North",
    "South",
    "East",
    "West",
    "God",
    "Sir",
    "Madam",
    "Mister",
    "DC",
];

#[cfg(test)]
mod tests {
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
            assert_eq!(agency(text, "[ASK]{open the gate}", "Ann").is_ok(), lawful, "{text}");
        }
    }

    #[test]
    fn row_104_a_name_without_a_page_is_noticed() {
        let world = Cartridge::default();
        assert_eq!(
            unfiled("Fog rises. Behind it stands Baron Vultan, waiting for @ghost.", &world, &["Ann"]),
            ["Baron", "Vultan", "@ghost"]
        );
        assert!(unfiled("Fog rises. Then Ann's lamp goes out.", &world, &["Ann"]).is_empty());
    }
}
