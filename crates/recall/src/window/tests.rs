use Role::{Assistant, System, User};
use proptest::prelude::*;

use super::*;

/// Every message costs ten tokens and its frame, whoever says it.
fn talk(parts: &[(Role, &str)]) -> Vec<(Role, String)> {
    parts.iter().map(|(role, text)| (*role, (*text).to_owned())).collect()
}

fn kept(window: u32) -> String {
    let block = |name: &str| format!("<memory name=\"{name}\">\n{}\n</memory>", "x ".repeat(20));
    let (old, first, second) = (block("old"), block("one"), block("two"));
    let said = talk(&[
        (System, "prompt"),
        (User, "a: how are you, ferryman, this evening?"),
        (Assistant, "b: <recall>old</recall>"),
        (User, &old),
        (Role::AssistantReasoning, "never sent"),
        (Assistant, "c: well"),
        (User, "d: and the fare?"),
        (Assistant, "e: <recall>one</recall>"),
        (User, &first),
        (Assistant, "f: <recall>two</recall>"),
        (User, &second),
    ]);
    match fitted(said, window) {
        Ok(fitted) => {
            let heads = fitted.said.iter().map(|(_, text)| match text.strip_prefix("<memory name=\"") {
                Some(rest) => rest.split('"').next().unwrap_or_default(),
                None => text.split(':').next().unwrap_or_default(),
            });
            format!("{} | {} out", heads.collect::<Vec<_>>().join(" "), fitted.left_out)
        }
        Err(error) => error.code.name().to_owned(),
    }
}

#[test]
fn recalled_pages_go_first_then_what_was_said_and_never_the_question() {
    let mut seen: Vec<String> = (0..400).map(kept).collect();
    seen.dedup();
    seen.reverse();
    assert_eq!(
        seen,
        [
            "prompt a b old c d e one f two | 0 out",
            "prompt a b c d e one f two | 1 out",
            "prompt b c d e one f two | 2 out",
            "prompt c d e one f two | 3 out",
            "prompt d e one f two | 4 out",
            "prompt d e f two | 5 out",
            "budget_exceeded",
        ]
    );
}

proptest! {
    #[test]
    fn what_is_sent_fits_and_keeps_its_order(
        texts in prop::collection::vec((0usize..3, "(<memory name=\"a\">\n)?[a-z ]{0,80}"), 0..20),
        window in 16u32..400,
    ) {
        let said: Vec<_> = texts.into_iter().map(|(role, text)| ([System, User, Assistant][role], text)).collect();
        if let Ok(fitted) = fitted(said.clone(), window) {
            prop_assert!(fitted.tokens <= u64::from(window - answer(window)));
            let mut rest = said.iter();
            prop_assert!(fitted.said.iter().all(|one| rest.any(|other| other == one)));
            let systems = |said: &[(Role, String)]| said.iter().filter(|(role, _)| *role == System).count();
            prop_assert_eq!(systems(&fitted.said), systems(&said));
        }
    }
}
