//! Parses JSON strictly: a repeated key is a fault instead of silently replacing the first.

use std::cell::RefCell;
use std::fmt;

use serde::de::{DeserializeSeed, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use crate::contract::check::{ValueFault, join};

/// The value, and one fault per repeated key; text that is not JSON has no value.
pub(super) fn parse(text: &str) -> Result<(Value, Vec<ValueFault>), Vec<ValueFault>> {
    let faults = RefCell::new(Vec::new());
    let mut reader = serde_json::Deserializer::from_str(text.trim_start_matches('\u{feff}'));
    let value = StrictReader { path: String::new(), faults: &faults }.deserialize(&mut reader).and_then(|value| {
        reader.end()?;
        Ok(value)
    });
    match value {
        Ok(value) => Ok((value, faults.into_inner())),
        Err(err) => Err(vec![ValueFault { path: String::new(), message: format!("not JSON: {err}") }]),
    }
}

struct StrictReader<'a> {
    path: String,
    faults: &'a RefCell<Vec<ValueFault>>,
}

impl StrictReader<'_> {
    fn below(&self, path: String) -> StrictReader<'_> {
        StrictReader { path, faults: self.faults }
    }
}

impl<'de> DeserializeSeed<'de> for StrictReader<'_> {
    type Value = Value;

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for StrictReader<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Value, E> {
        Number::from_f64(value).map(Value::Number).ok_or_else(|| E::custom("not a finite number"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut all = Vec::new();
        while let Some(item) = items.next_element_seed(self.below(format!("{}[{}]", self.path, all.len())))? {
            all.push(item);
        }
        Ok(Value::Array(all))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut all = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            let path = join(&self.path, &key);
            if all.contains_key(&key) {
                let mut faults = self.faults.try_borrow_mut().map_err(A::Error::custom)?;
                faults.push(ValueFault { path: path.clone(), message: "is repeated".to_owned() });
            }
            let value = entries.next_value_seed(self.below(path))?;
            all.insert(key, value);
        }
        Ok(Value::Object(all))
    }
}
