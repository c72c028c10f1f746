//! Texts between delimiters that they cannot end, for requests to models. A text of a file, a page or a person is data;
//! only its delimiters tell a model where it begins and ends. Any crate may use it.

/// The names of the delimiters. A text that writes one of them shows it instead.
const NAMES: [&str; 16] = [
    "about",
    "memory",
    "mail",
    "cathedral",
    "recall",
    "human",
    "said",
    "transcript",
    // Of the game master.
    "wishes",
    "laws",
    "campaign",
    "endings",
    "passages",
    "move",
    "page",
    "question",
];
/// How many signs may stand between `<` and a name, or within it: a model would still read a tag.
const NOISE: usize = 64;
/// How much of an attribute is shown.
const ATTRIBUTE: usize = 200;

/// A text between the delimiters `name`; the value of the attribute says what it is.
pub fn delimited(name: &str, with: Option<(&str, &str)>, text: &str) -> String {
    let with = with.map_or(String::new(), |(key, value)| format!(" {key}=\"{}\"", attribute(value)));
    format!("<{name}{with}>\n{}\n</{name}>", harmless(text.trim()))
}

/// A text in which none of the delimiters begins or ends, nor a mark by which servers of models tell speakers apart
/// (`<|im_end|>`).
pub fn harmless(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('<') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        out.push_str(if rest.starts_with('|') || names_a_delimiter(rest) { "&lt;" } else { "<" });
    }
    out + rest
}

/// Whether a text that follows `<` begins with one of the names, whatever else is strewn in: `/`, blanks, signs of no
/// width.
fn names_a_delimiter(rest: &str) -> bool {
    let is = |name: &str| {
        let mut wanted = name.chars().peekable();
        let mut noise = 0;
        for letter in rest.chars() {
            let Some(next) = wanted.peek() else { return true };
            match letter.is_alphanumeric() {
                true if !letter.eq_ignore_ascii_case(next) => return false,
                true => _ = wanted.next(),
                false => noise += 1,
            }
            if noise > NOISE {
                return false;
            }
        }
        wanted.peek().is_none()
    };
    NAMES.iter().any(|name| is(name))
}

/// The value of an attribute, for between quotation marks: one line, without any sign of a tag.
pub fn attribute(value: &str) -> String {
    let mut out = String::new();
    for letter in value.chars().take(ATTRIBUTE) {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            letter if letter.is_control() => out.push(' '),
            letter => out.push(letter),
        }
    }
    out
}

#[cfg(test)]
mod tests;
