//! Text from outside, without what a terminal obeys, and as it is compared: wide, small, Cyrillic and Greek letters that look like
//! Latin ones, odd brackets and marks over letters are folded. `prose` and everything that writes an outside text use it.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;
use unicode_normalization::UnicodeNormalization;

/// Escapes of a terminal: CSI, OSC and the two-character ones, in their seven-bit and their eight-bit form.
static ESCAPES: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        "(?s)(?:\u{1b}\\[|\u{9b})[0-?]*[ -/]*[@-~]|(?:\u{1b}\\]|\u{9d}).*?(?:\u{7}|\u{9c}|\u{1b}\\\\|$)|\u{1b}(?:.|$)",
    )
    .ok()
});

/// Marks that cannot be seen and change what is: zero width, direction, byte order, variation.
fn invisible(c: char) -> bool {
    matches!(
        c,
        '\u{ad}' | '\u{34f}' | '\u{115f}' | '\u{1160}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{e0000}'..='\u{e01ef}'
    )
}

/// The text without what a terminal obeys or an eye does not see.
pub fn visible(text: &str) -> String {
    let bare = ESCAPES.as_ref().map_or(text.into(), |regex| regex.replace_all(text, ""));
    let kept = |c: char| match c {
        '\t' => Some(' '),
        '\n' => Some('\n'),
        c if c.is_control() || invisible(c) => None,
        c => Some(c),
    };
    bare.chars().filter_map(kept).collect()
}

/// The same on one line, for a report or a message of another program.
pub fn one_line(text: &str) -> String {
    visible(text).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Letters of other scripts that look like Latin ones, and small capitals, which have no compatibility form.
const ALIKE: [(&str, &str); 4] = [
    ("АВЕКМНОРСТУХІЈЅԚԜ", "ABEKMHOPCTYXIJSQW"),
    ("авекмнорстухіјѕѵԛԝ", "abekmhopctyxijsvqw"),
    ("ΑΒΕΖΗΙΚΜΝΟΡΤΥΧονι", "ABEZHIKMNOPTYXovi"),
    ("ᴀʙᴄᴅᴇꜰɢʜɪᴊᴋʟᴍɴᴏᴘʀꜱᴛᴜᴠᴡʏᴢ", "ABCDEFGHIJKLMNOPRSTUVWYZ"),
];

fn folded(c: char) -> char {
    for (from, to) in ALIKE {
        if let Some(at) = from.chars().position(|own| own == c) {
            return to.chars().nth(at).unwrap_or(c);
        }
    }
    match c {
        '【' | '〔' | '〖' | '〘' | '〚' | '⟦' | '❲' | '⁅' | '⟬' | '⦋' | '⌈' | '⌊' => '[',
        '】' | '〕' | '〗' | '〙' | '〛' | '⟧' | '❳' | '⁆' | '⟭' | '⦌' | '⌉' | '⌋' => ']',
        '’' | '‘' | 'ʼ' => '\'',
        '‐'..='―' | '−' => '-',
        '∕' | '⁄' => '/',
        '։' | '׃' | '∶' | '꞉' => ':',
        c => c,
    }
}

/// A text as it is compared, and where each byte of it stands in the text itself.
pub struct Folded {
    pub text: String,
    from: Vec<Range<usize>>,
}

impl Folded {
    pub fn new(text: &str) -> Folded {
        let mut out = Folded { text: String::with_capacity(text.len()), from: Vec::with_capacity(text.len()) };
        for (at, c) in text.char_indices() {
            // A mark over a letter of its own changes how the word looks and not which it is.
            if invisible(c) || matches!(c, '\u{300}'..='\u{36f}' | '\u{20d0}'..='\u{20ff}') {
                continue;
            }
            for own in std::iter::once(c).nfkc().map(folded) {
                out.text.push(own);
                out.from.extend(std::iter::repeat_n(at..at + c.len_utf8(), own.len_utf8()));
            }
        }
        out
    }

    /// The place in the text itself.
    pub fn back(&self, range: &Range<usize>) -> Range<usize> {
        let start = self.from.get(range.start).map_or(0, |own| own.start);
        let end = range.end.checked_sub(1).and_then(|last| self.from.get(last)).map_or(start, |own| own.end);
        start..end.max(start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_compared_as_the_eye_reads_it() {
        for (raw, same) in [
            ("[ＨＵＤ]", "[HUD]"),
            ("〖НUD〗", "[HUD]"),
            ("H\u{336}P ９９", "HP 99"),
            ("ʜᴜᴅ", "HUD"),
            ("𝐇𝐏 9", "HP 9"),
            ("Björk’s 天", "Björk's 天"),
        ] {
            assert_eq!(Folded::new(raw).text, same, "{raw}");
        }
        let raw = "风 ＨＵＤ… end";
        let folded = Folded::new(raw);
        let at = folded.text.find("HUD").unwrap();
        assert_eq!(&raw[folded.back(&(at..at + 3))], "ＨＵＤ");
        assert_eq!(&raw[folded.back(&(at..at + 4))], "ＨＵＤ…", "a mark that becomes three is one");
        assert_eq!(folded.back(&(0..folded.text.len())), 0..raw.len());
        assert_eq!(Folded::new("").back(&(0..0)), 0..0);
    }

    #[test]
    fn no_escape_is_left_in_either_form() {
        for raw in
            ["a\u{1b}[31mb", "a\u{9b}31mb", "a\u{1b}]0;t\u{7}b", "a\u{9d}0;t\u{9c}b", "a\u{200b}\u{7}b", "a\u{1b}cb"]
        {
            assert_eq!(visible(raw), "ab", "{raw:?}");
        }
        assert_eq!(one_line("boom \u{1b}[31m\n\n[HUD]"), "boom [HUD]");
    }
}
