//! Reads JSON that a model damaged: bare keys, comments, single quotes, Python's words, a missing comma, a cut end.
//!
//! Every repair is listed with its path. What could be meant in two ways is not read: the fault names the field. Pure,
//! total and bounded.

mod text;

use serde_json::{Map, Number, Value};

use super::repair::Repair;

/// The deepest nesting that is read.
const DEEPEST: usize = 64;
/// The most repairs of one value; what needs more is not damaged, but something else.
const MOST_REPAIRS: usize = 256;

/// A damaged value that could be read.
#[derive(Debug, PartialEq)]
pub(super) struct Mended {
    pub value: Value,
    pub repairs: Vec<Repair>,
    /// How many bytes of the text it takes.
    pub length: usize,
}

/// Why a damaged value cannot be read, and where in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Unreadable {
    pub path: String,
    pub message: String,
}

/// Reads the object or list with which a text begins.
pub(super) fn read(text: &str) -> Result<Mended, Unreadable> {
    let mut reader = Reader { text, at: 0, path: Vec::new(), repairs: Vec::new() };
    let value = reader.value()?;
    Ok(Mended { value, repairs: reader.repairs, length: reader.at })
}

enum PathStep {
    Key(String),
    Index(usize),
}

/// What holds the value that is being read.
#[derive(Clone, Copy, PartialEq)]
enum ValueHolder {
    Nothing,
    Object,
    List,
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    path: Vec<PathStep>,
    repairs: Vec<Repair>,
}

type LenientResult<T> = Result<T, Unreadable>;

impl<'a> Reader<'a> {
    fn value(&mut self) -> LenientResult<Value> {
        self.blanks()?;
        let holder = match self.path.last() {
            None => ValueHolder::Nothing,
            Some(PathStep::Key(_)) => ValueHolder::Object,
            Some(PathStep::Index(_)) => ValueHolder::List,
        };
        match self.peek() {
            Some('{') => self.object(),
            Some('[') => self.list(),
            Some(quote) if text::closing(quote).is_some() => self.string(holder).map(Value::String),
            Some(c) if c.is_ascii_digit() || "+-.".contains(c) => self.number(holder),
            Some(c) if c.is_alphabetic() => self.word(),
            Some(c) => self.wrong(format!("`{c}` does not begin a value")),
            None => self.cut(),
        }
    }

    /// Whether another entry follows; otherwise the end is taken, or mended as `cut` says.
    fn goes_on(&mut self, close: char, cut: &'static str) -> LenientResult<bool> {
        loop {
            self.blanks()?;
            match self.peek() {
                None => return self.mend(cut).map(|()| false),
                Some(c) if c == close => {
                    self.at += 1;
                    return Ok(false);
                }
                Some(',') => {
                    self.at += 1;
                    self.mend("a comma too many")?;
                }
                Some(_) => return Ok(true),
            }
        }
    }

    fn object(&mut self) -> LenientResult<Value> {
        self.deeper()?;
        let mut fields = Map::new();
        while self.goes_on('}', "the reply ends before this object is closed")? {
            let Some(key) = self.key()? else { break };
            if fields.contains_key(&key) {
                return self.wrong(format!("the key `{key}` stands twice"));
            }
            self.path.push(PathStep::Key(key));
            let value = self.value()?;
            self.after_value('}')?;
            if let Some(PathStep::Key(key)) = self.path.pop() {
                fields.insert(key, value);
            }
        }
        Ok(Value::Object(fields))
    }

    fn list(&mut self) -> LenientResult<Value> {
        self.deeper()?;
        let mut items = Vec::new();
        while self.goes_on(']', "the reply ends before this list is closed; what would follow is missing")? {
            if self.rest().starts_with("...") {
                return self.wrong("`...` leaves something out".to_owned());
            }
            self.path.push(PathStep::Index(items.len()));
            items.push(self.value()?);
            self.after_value(']')?;
            self.path.pop();
        }
        Ok(Value::Array(items))
    }

    /// A key and its colon; none if the text ends before the value.
    fn key(&mut self) -> LenientResult<Option<String>> {
        let key = match self.peek() {
            Some(quote) if text::closing(quote).is_some() => {
                let ending = text::key_ends(self.rest());
                let Some(length) = ending else { return self.lost_key() };
                let inner = &self.rest()[quote.len_utf8()..length];
                let key = text::unescaped(inner).unwrap_or_else(|| inner.to_owned());
                self.at += length + text::closing(quote).map_or(1, char::len_utf8);
                if quote != '"' {
                    self.mend("a key in other quotes")?;
                }
                key
            }
            Some(c) if c.is_alphabetic() || c == '_' || c == '$' => {
                let end = self.rest().find(|c: char| !(c.is_alphanumeric() || "_$-".contains(c)));
                let Some(end) = end else { return self.lost_key() };
                let key = self.rest()[..end].to_owned();
                self.at += end;
                self.mend("a key without quotes")?;
                key
            }
            Some(c) => return self.wrong(format!("`{c}` does not begin a key")),
            None => return Ok(None),
        };
        self.blanks()?;
        match self.peek() {
            Some(':') => self.at += 1,
            None => return self.lost_key(),
            Some(c) => return self.wrong(format!("after the key `{key}` a colon is needed, not `{c}`")),
        }
        self.blanks()?;
        if self.peek().is_none() {
            return self.lost_key();
        }
        Ok(Some(key))
    }

    /// The text ends in a key, or after it: nothing of a value is lost but the fact that there was one.
    fn lost_key<T>(&mut self) -> LenientResult<Option<T>> {
        self.at = self.text.len();
        self.mend("the reply ends after the beginning of a further field, which is left out")?;
        Ok(None)
    }

    /// What follows a value: a comma, the end, or the next one without a comma.
    fn after_value(&mut self, end: char) -> LenientResult<()> {
        self.blanks()?;
        match self.peek() {
            Some(',') => {
                self.at += 1;
                self.blanks()?;
                if self.peek() == Some(end) {
                    self.mend("a comma too many")?;
                }
                Ok(())
            }
            None => Ok(()),
            Some(c) if c == end => Ok(()),
            Some('}' | ']') => self.wrong("brackets close in the wrong order".to_owned()),
            Some(c) if c == '{' || c == '[' || c.is_alphanumeric() || c == '_' || text::closing(c).is_some() => {
                self.mend("a missing comma after this value")
            }
            Some(c) => self.wrong(format!("`{c}` cannot follow this value")),
        }
    }

    fn string(&mut self, holder: ValueHolder) -> LenientResult<String> {
        let found = text::string(self.rest(), holder == ValueHolder::List);
        let Some(found) = found else { return self.cut() };
        self.at += found.length;
        for what in found.repairs {
            self.mend(what)?;
        }
        Ok(found.text)
    }

    fn number(&mut self, holder: ValueHolder) -> LenientResult<Value> {
        let end = self.rest().find(|c: char| !(c.is_ascii_digit() || "+-.eE".contains(c)));
        let Some(end) = end else { return self.cut() };
        let grouped = if holder == ValueHolder::List { None } else { text::grouped(self.rest()) };
        let follows = self.rest()[end..].chars().next();
        if grouped.is_some() || follows.is_some_and(|c| c.is_alphanumeric() || "%_/:$€".contains(c)) {
            return self.bare(); // not a number, but a text that begins with one
        }
        let written = &self.rest()[..end];
        if let Ok(number) = serde_json::from_str::<Number>(written) {
            self.at += end;
            return Ok(Value::Number(number));
        }
        let usual = text::usual_number(written);
        match usual.and_then(|usual| serde_json::from_str::<Number>(&usual).ok()) {
            Some(number) => {
                let what = format!("`{written}` was read as {number}");
                self.at += end;
                self.mend(what)?;
                Ok(Value::Number(number))
            }
            None => self.wrong(format!("`{}` is no number", written.chars().take(40).collect::<String>())),
        }
    }

    /// A word that stands for itself, or a text without quotes.
    fn word(&mut self) -> LenientResult<Value> {
        let end = self.rest().find(|c: char| !(c.is_alphanumeric() || c == '_'));
        let Some(end) = end else { return self.cut() };
        let word = &self.rest()[..end];
        let value = match word.to_ascii_lowercase().as_str() {
            "true" => Value::Bool(true),
            "false" => Value::Bool(false),
            "null" | "none" => Value::Null,
            "nan" | "infinity" | "undefined" => return self.wrong(format!("`{word}` is no value of JSON")),
            _ => return self.bare(),
        };
        let ends = self.rest()[end..].trim_start();
        if !ends.is_empty() && !ends.starts_with([',', '}', ']', '"', '\'', '/', '#', '\n']) && !text::key_follows(ends)
        {
            return self.bare();
        }
        if word != "true" && word != "false" && word != "null" {
            let what = format!("`{word}` was read as {value}");
            self.at += end;
            self.mend(what)?;
            return Ok(value);
        }
        self.at += end;
        Ok(value)
    }

    /// A text without quotes: to the end of the line, the comma or the bracket.
    fn bare(&mut self) -> LenientResult<Value> {
        let groups = text::grouped(self.rest()).unwrap_or(0);
        let end = self.rest()[groups..].find([',', '}', ']', '{', '[', '"', '\n']).map(|found| groups + found);
        let Some(end) = end else { return self.cut() };
        let bare = self.rest()[..end].trim_end().to_owned();
        if self.rest()[end..].starts_with(['{', '[', '"']) {
            return self.wrong(format!("`{}` is neither a value nor a text in quotes", clipped(&bare)));
        }
        self.at += end;
        self.mend(format!("`{}` had no quotes", clipped(&bare)))?;
        Ok(Value::String(bare))
    }

    /// Skips blanks and comments.
    fn blanks(&mut self) -> LenientResult<()> {
        loop {
            let bare = self.rest().trim_start();
            self.at = self.text.len() - bare.len();
            let Some(length) = text::comment(bare) else { return Ok(()) };
            self.at += length;
            self.mend("a comment")?;
        }
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    /// Over the opening bracket, one level down.
    fn deeper(&mut self) -> LenientResult<()> {
        self.at += 1;
        if self.path.len() >= DEEPEST { self.wrong(format!("nested deeper than {DEEPEST}")) } else { Ok(()) }
    }

    fn cut<T>(&mut self) -> LenientResult<T> {
        self.wrong("the reply ends in the middle of this value".to_owned())
    }

    fn wrong<T>(&self, message: String) -> LenientResult<T> {
        Err(Unreadable { path: self.shown_path(), message })
    }

    fn mend(&mut self, what: impl Into<String>) -> LenientResult<()> {
        if self.repairs.len() >= MOST_REPAIRS {
            return self.wrong(format!("more than {MOST_REPAIRS} repairs would be needed"));
        }
        let repair = Repair { path: self.shown_path(), what: what.into() };
        self.repairs.push(repair);
        Ok(())
    }

    fn shown_path(&self) -> String {
        let mut path = String::new();
        for step in &self.path {
            match step {
                PathStep::Index(index) => path += &format!("[{index}]"),
                PathStep::Key(key) => {
                    if !path.is_empty() {
                        path.push('.');
                    }
                    path += key;
                }
            }
        }
        path
    }
}

fn clipped(text: &str) -> String {
    text.chars().take(40).collect()
}

#[cfg(test)]
mod tests;
