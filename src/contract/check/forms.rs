//! Alternatives (`oneOf`, `anyOf`): finds the intended one, so that only its faults are reported.

use serde_json::Value;

use super::limits::{kinds, name_of};
use super::{SchemaCheck, ValueFault, fault, join};
use acheron_base::nearest::hint;
use acheron_base::quoted;

impl<'a> SchemaCheck<'a> {
    pub(super) fn forms(
        &mut self,
        forms: &'a [Value],
        exactly_one: bool,
        value: &Value,
        path: &str,
        depth: usize,
        faults: &mut Vec<ValueFault>,
    ) {
        let mut refusals: Vec<(&'a Value, Vec<ValueFault>)> = Vec::new();
        let mut fitting = 0;
        for form in forms {
            let mut found = Vec::new();
            self.value(form, value, path, depth + 1, &mut found);
            if found.is_empty() {
                fitting += 1;
            } else {
                refusals.push((form, found));
            }
        }
        match fitting {
            0 => {}
            1 => return,
            _ if exactly_one && self.left > 0 => {
                return fault(faults, path, "matches more than one of the allowed forms");
            }
            _ => return,
        }
        if let Some(words) = self.words(forms, 0) {
            return fault(faults, path, not_among(value, &words));
        }
        // The form whose tag is in the value is the intended one.
        if let Some((_, found)) = refusals.iter().find(|(form, _)| self.tag(form).is_some_and(|tag| tagged(value, tag)))
        {
            return faults.extend(found.iter().cloned());
        }
        let tags: Vec<_> = forms.iter().filter_map(|form| self.tag(form)).collect();
        if let Some((key, _)) = tags.first().filter(|_| tags.len() == forms.len() && value.is_object()) {
            let words: Vec<&str> = tags.iter().filter(|(name, _)| name == key).map(|(_, word)| *word).collect();
            return match value.get(key) {
                Some(given) => fault(faults, &join(path, key), not_among(given, &words)),
                None => fault(faults, path, format!("{key} is missing; it is one of {}", words.join(", "))),
            };
        }
        // An enumeration whose words carry data: the one key of a form says which is meant.
        let keys: Option<Vec<&str>> = forms.iter().map(|form| self.only_key(form)).collect();
        if let (Some(keys), Some(object)) = (keys, value.as_object()) {
            let meant =
                refusals.iter().find(|(form, _)| self.only_key(form).is_some_and(|key| object.contains_key(key)));
            return match (meant, object.keys().next()) {
                (Some((_, found)), _) => faults.extend(found.iter().cloned()),
                (None, Some(given)) => fault(faults, path, not_among(&Value::from(given.as_str()), &keys)),
                (None, None) => fault(faults, path, format!("must have one of the keys {}", keys.join(", "))),
            };
        }
        // Otherwise report the only form of the right type; with several, list the possible values.
        let mut likely = refusals.iter().filter(|(form, _)| self.kinds(form).contains(&name_of(value)));
        match (likely.next(), likely.next()) {
            (Some((_, found)), None) => faults.extend(found.iter().cloned()),
            (Some(_), Some(_)) => fault(faults, path, "matches none of the allowed forms"),
            (None, _) => {
                let mut kinds: Vec<_> = forms.iter().flat_map(|form| self.kinds(form)).collect();
                kinds.dedup();
                fault(faults, path, format!("must be {}, not {}", kinds.join(" or "), name_of(value)));
            }
        }
    }

    fn resolved(&self, form: &'a Value) -> &'a Value {
        let target = form.get("$ref").and_then(|target| self.root.pointer(target.as_str()?.trim_start_matches('#')));
        target.unwrap_or(form)
    }

    fn kinds(&self, form: &'a Value) -> Vec<&'static str> {
        kinds(self.resolved(form))
    }

    /// The allowed words, if every form is a constant, an enumeration, or alternatives of these: an optional
    /// enumeration is a form beside `null`.
    fn words(&self, forms: &'a [Value], depth: usize) -> Option<Vec<&'a str>> {
        let mut words = Vec::new();
        for form in forms.iter().map(|form| self.resolved(form)) {
            let inner = || form.get("oneOf").or(form.get("anyOf"))?.as_array().filter(|_| depth < 8);
            match (form.get("const"), form.get("enum")) {
                (Some(word), _) => words.push(word.as_str()?),
                (_, Some(several)) => words.extend(several.as_array()?.iter().filter_map(Value::as_str)),
                _ if form.get("type") == Some(&Value::from("null")) => {}
                _ => words.extend(self.words(inner()?, depth + 1)?),
            }
        }
        Some(words)
    }

    /// The key of a form that has only this one and must have it.
    fn only_key(&self, form: &'a Value) -> Option<&'a str> {
        let form = self.resolved(form);
        let (required, properties) = (form.get("required")?.as_array()?, form.get("properties")?.as_object()?);
        match (required.as_slice(), properties.len()) {
            ([key], 1) => key.as_str().filter(|key| properties.contains_key(*key)),
            _ => None,
        }
    }

    /// The key and the word that distinguish a form from the others.
    fn tag(&self, form: &'a Value) -> Option<(&'a str, &'a str)> {
        let properties = self.resolved(form).get("properties")?.as_object()?;
        properties.iter().find_map(|(key, schema)| Some((key.as_str(), schema.get("const")?.as_str()?)))
    }
}

fn tagged(value: &Value, (key, word): (&str, &str)) -> bool {
    value.get(key).and_then(Value::as_str) == Some(word)
}

pub(super) fn not_among(value: &Value, words: &[&str]) -> String {
    match value {
        Value::String(word) => {
            format!("{} is not known{}", quoted(word), hint(word, words.iter().copied(), "possible values"))
        }
        other => format!("must be one of {}, not {}", words.join(", "), name_of(other)),
    }
}
