use proptest::prelude::*;

use super::*;

/// Name, text, and what tiktoken counts with `cl100k_base` and `o200k_base`.
fn languages() -> Vec<(&'static str, &'static str, u64, u64)> {
    vec![
        (
            "English",
            "All human beings are born free and equal in dignity and rights. They are endowed with reason and conscience and should act towards one another in a spirit of brotherhood.",
            33,
            33,
        ),
        (
            "German",
            "Alle Menschen sind frei und gleich an Würde und Rechten geboren. Sie sind mit Vernunft und Gewissen begabt und sollen einander im Geist der Brüderlichkeit begegnen.",
            44,
            38,
        ),
        (
            "Polish",
            "Wszyscy ludzie rodzą się wolni i równi pod względem swej godności i swych praw. Są oni obdarzeni rozumem i sumieniem i powinni postępować wobec innych w duchu braterstwa.",
            64,
            53,
        ),
        (
            "Spanish",
            "Todos los seres humanos nacen libres e iguales en dignidad y derechos y, dotados como están de razón y conciencia, deben comportarse fraternalmente los unos con los otros.",
            44,
            38,
        ),
        (
            "Turkish",
            "Bütün insanlar hür, haysiyet ve haklar bakımından eşit doğarlar. Akıl ve vicdana sahiptirler ve birbirlerine karşı kardeşlik zihniyeti ile hareket etmelidirler.",
            60,
            46,
        ),
        (
            "Russian",
            "Все люди рождаются свободными и равными в своём достоинстве и правах. Они наделены разумом и совестью и должны поступать в отношении друг друга в духе братства.",
            75,
            42,
        ),
        (
            "Greek",
            "Όλοι οι άνθρωποι γεννιούνται ελεύθεροι και ίσοι στην αξιοπρέπεια και τα δικαιώματα. Είναι προικισμένοι με λογική και συνείδηση.",
            113,
            46,
        ),
        (
            "Arabic",
            "يولد جميع الناس أحرارًا متساوين في الكرامة والحقوق. وقد وهبوا عقلاً وضميرًا وعليهم أن يعامل بعضهم بعضًا بروح الإخاء.",
            88,
            44,
        ),
        ("Hindi", "सभी मनुष्यों को गौरव और अधिकारों के मामले में जन्मजात स्वतन्त्रता और समानता प्राप्त है।", 84, 25),
        (
            "Korean",
            "모든 인간은 태어날 때부터 자유로우며 그 존엄과 권리에 있어 동등하다. 인간은 천부적으로 이성과 양심을 부여받았으며 서로 형제애의 정신으로 행동하여야 한다.",
            85,
            51,
        ),
        ("Chinese", "人人生而自由，在尊严和权利上一律平等。他们赋有理性和良心，并应以兄弟关系的精神相对待。", 50, 35),
        (
            "Japanese",
            "すべての人間は、生まれながらにして自由であり、かつ、尊厳と権利とについて平等である。人間は、理性と良心とを授けられており、互いに同胞の精神をもって行動しなければならない。",
            93,
            72,
        ),
        ("Thai", "มนุษย์ทั้งหลายเกิดมามีอิสระและเสมอภาคกันในเกียรติศักดิ์และสิทธิ ต่างมีเหตุผลและมโนธรรม", 89, 40),
        (
            "Rust",
            "fn main() -> Result<(), Box<dyn Error>> {\n    let mut total = 0u64;\n    for line in text.lines().filter(|line| !line.is_empty()) {\n        total += line.len() as u64; // bytes\n    }\n    println!(\"{total}\");\n    Ok(())\n}\n",
            62,
            63,
        ),
        (
            "JSON",
            "{\"tool_calls\":[{\"name\":\"file_write\",\"arguments\":{\"path\":\"agents/self/chat/control/reply\",\"content\":\"line one\\nline \\\"two\\\"\"}}]}",
            31,
            32,
        ),
    ]
}

/// Characters taken from a list by a generator that is the same everywhere.
fn picked(generator: &mut u64, from: &[char], count: usize) -> String {
    let mut next = || {
        *generator = generator.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        from[(*generator >> 33) as usize % from.len()]
    };
    (0..count).map(|_| next()).collect()
}

/// Strings that no language has, with the same figures.
fn hostile() -> Vec<(&'static str, String, u64, u64)> {
    let mut x = 20261117;
    let mut pick = |from: &str, count| picked(&mut x, &from.chars().collect::<Vec<_>>(), count);
    let base64 = pick("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", 400);
    let consonants = pick("bcdfghjklmnpqrstvwxz", 400);
    let hexadecimal = pick("0123456789abcdef", 400);
    let capitals = pick("BCDFGHJKLMNPQRSTVWXZ", 400);
    let marks = pick("!#$%&()*+,-./:;<=>?@[]^_{|}~", 400);
    let mut range =
        |from: u32, to: u32, count| picked(&mut x, &(from..to).filter_map(char::from_u32).collect::<Vec<_>>(), count);
    let emoji = range(0x1f300, 0x1f5ff, 100);
    let private = range(0xe000, 0xe100, 100);
    let combining = format!("e{}", range(0x300, 0x36f, 200));
    let han = range(0x3400, 0x3500, 100);
    vec![
        ("base64", base64, 287, 275),
        ("consonants", consonants, 232, 229),
        ("hexadecimal", hexadecimal, 226, 226),
        ("capitals", capitals, 242, 241),
        ("marks", marks, 269, 273),
        ("emoji", emoji, 284, 226),
        ("private use", private, 299, 275),
        ("combining", combining, 398, 379),
        ("rare Han", han, 297, 295),
        ("spaces", " ".repeat(500), 5, 5),
        ("lines", "\n".repeat(300), 10, 20),
        ("one letter", "a".repeat(500), 63, 63),
        ("zero width", "\u{200b}".repeat(100), 50, 25),
    ]
}

#[test]
fn no_text_has_more_tokens_than_are_counted_and_few_have_many_less() {
    let languages = languages().into_iter().map(|(name, text, old, new)| (name, text.to_owned(), old, new));
    for (name, text, old, new) in languages.chain(hostile()) {
        let counted = count(&text);
        assert!(counted >= old && counted >= new, "{name}: {counted}, and models count {old} and {new}");
        assert!(counted <= (old + old / 16).max(new), "{name}: {counted} for {old}");
        assert!(counted <= at_most(&text), "{name}");
    }
}

#[test]
fn a_head_is_as_long_as_it_may_be() {
    assert_eq!(head("The boat is small and the river is wide.", 5), "The boat is small and");
    assert_eq!(head("⟐", 0), "");
    assert_eq!(head("short", 5), "short", "it is not even counted");
    let line = "bcdfghjk".repeat(50_000);
    let short = head(&line, 1000);
    assert!(short.len() >= 1000 && count(short) <= 1000, "{}", short.len());
}

/// What it takes does not grow faster than the text: a piece without an end is no trap.
#[test]
fn a_text_of_a_million_spaces_and_one_letter_is_counted() {
    assert!(count(&format!("{}x{}y", " ".repeat(999), " ".repeat(1_000_000))) < 10_000);
    assert!(count(&"x".repeat(1_000_000)) < 200_000);
}

#[test]
fn an_estimate_is_about_what_models_say() {
    for (text, tokens) in [("", 0), ("hello world", 2), ("x = y + 1;\n", 7), ("東京都", 3), ("🙂", 3)] {
        assert_eq!(estimate(text), tokens, "{text:?}");
    }
}

proptest! {
    #[test]
    fn a_head_fits(text in "\\PC{0,60}", room in 0u64..40) {
        prop_assert!(fits(head(&text, room), room));
        prop_assert!(text.starts_with(head(&text, room)));
    }

    #[test]
    fn no_text_has_more_tokens_than_bytes(text in ".{0,200}") {
        prop_assert!(count(&text) <= at_most(&text).max(1) * 17 / 16);
    }
}
