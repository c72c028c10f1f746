//! Values that are written in another form than the type has: `"42"` for 42, `"no"` for false, one item for a list.
//!
//! A conversion loses nothing and can be meant in one way only. Where there are two ways, the value is refused.

use serde_json::{Number, Value};

use crate::schema::Complaint;

/// The value in the form that the type has, and the sentence about it. None if there is no such form; an error if the
/// value can be meant in several ways.
pub(super) fn convert(value: &Value, complaint: &Complaint) -> Result<Option<(Value, String)>, String> {
    let wants = |kind: &str| complaint.wanted.iter().any(|one| one == kind);
    let told =
        |converted: Value, shown: &str| Ok(Some((converted.clone(), format!("`{shown}` was read as {converted}"))));
    if let Value::String(text) = value {
        let bare = text.trim();
        if !complaint.options.is_empty() {
            return option(bare, &complaint.options);
        }
        if wants("boolean")
            && let Some(truth) = truth(bare)
        {
            return told(Value::Bool(truth), bare);
        }
        if wants("number") || wants("integer") {
            return match number(bare)? {
                Some(number) if wants("number") || !number.is_f64() => told(Value::Number(number), bare),
                _ => Ok(None),
            };
        }
        if wants("object") || wants("array") {
            let inner = super::strict_json::parse(bare).ok();
            let fits = |inner: &Value| (inner.is_object() && wants("object")) || (inner.is_array() && wants("array"));
            if let Some(inner) = inner.filter(fits) {
                return Ok(Some((inner, "JSON inside a string".to_owned())));
            }
        }
    }
    if wants("array") && !value.is_array() && !value.is_null() {
        return Ok(Some((Value::Array(vec![value.clone()]), "one item was read as a list of one".to_owned())));
    }
    Ok(None)
}

fn truth(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "yes" | "on" => Some(true),
        "false" | "no" | "off" => Some(false),
        _ => None,
    }
}

/// A number in a text.
fn number(text: &str) -> Result<Option<Number>, String> {
    if let Ok(number) = serde_json::from_str::<Number>(text)
        && number.to_string() == text
    {
        return Ok(Some(number));
    }
    if let Some(share) = text.strip_suffix('%').map(str::trim)
        && share.parse::<f64>().is_ok()
    {
        return Err(format!("`{text}` can be {share} or {share} / 100; give a number"));
    }
    if text.contains(',') {
        let (whole, fraction) = text.rsplit_once('.').map_or((text, None), |(whole, part)| (whole, Some(part)));
        let groups: Vec<&str> = whole.trim_start_matches(['-', '+']).split(',').collect();
        let digits = |part: &&str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        let grouped =
            groups.iter().all(&digits) && groups.iter().skip(1).all(|part| part.len() == 3) && groups[0].len() <= 3;
        // One comma alone may be a decimal point.
        if grouped && (fraction.is_some_and(|part| digits(&part)) || (groups.len() > 2 && fraction.is_none())) {
            return Ok(serde_json::from_str(&text.replace([',', '+'], "")).ok());
        }
        if groups.iter().all(digits) {
            return Err(format!("`{text}` can be meant in two ways; give a number without commas"));
        }
    }
    Ok(None)
}

/// One of the allowed words, written otherwise; a sentence with such a word in it is refused, since it may say the
/// opposite.
fn option(text: &str, options: &[Value]) -> Result<Option<(Value, String)>, String> {
    let fold = |text: &str| -> String {
        let bare = text.trim_matches(|c: char| !c.is_alphanumeric());
        bare.chars().flat_map(char::to_lowercase).map(|c| if "_- ".contains(c) { '_' } else { c }).collect()
    };
    let words: Vec<&str> = options.iter().filter_map(Value::as_str).collect();
    let same: Vec<&&str> = words.iter().filter(|word| fold(word) == fold(text) && !fold(text).is_empty()).collect();
    if let [one] = same[..] {
        return Ok(Some((Value::from(*one), format!("`{text}` was read as \"{one}\""))));
    }
    let clipped: String = text.chars().take(60).collect();
    Err(format!("`{clipped}` is none of {}", words.join(", ")))
}
