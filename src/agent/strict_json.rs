//! Strict JSON for untrusted input: a repeated key is an error, and the number of values is limited.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// The most values in one call. Its text may be long; its structure need not be.
pub(super) const MAX_VALUES: u32 = 10_000;

/// A value without repeated keys.
#[derive(Debug)]
pub(super) struct StrictValue(pub Value);

/// The reason why valid JSON is not accepted.
#[derive(Debug)]
pub(super) struct StrictFault(pub String);

/// Reads a value up to the limit. A fault is an ordinary result: the rest of the document is still read, so that
/// malformed JSON can be told from JSON that is not accepted.
pub(super) struct StrictReading<'a>(pub &'a mut u32);

impl<'de> DeserializeSeed<'de> for StrictReading<'_> {
    type Value = Result<StrictValue, StrictFault>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl StrictReading<'_> {
    fn value(self, value: impl Into<Value>) -> Result<StrictValue, StrictFault> {
        if *self.0 == 0 {
            return Err(StrictFault(format!("it consists of more than {MAX_VALUES} values")));
        }
        *self.0 -= 1;
        Ok(StrictValue(value.into()))
    }
}

impl<'de> Visitor<'de> for StrictReading<'_> {
    type Value = Result<StrictValue, StrictFault>;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Self::Value, E> {
        Ok(self.value(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Self::Value, E> {
        Ok(self.value(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Self::Value, E> {
        Ok(self.value(value))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Self::Value, E> {
        Ok(self.value(Number::from_f64(value).map_or(Value::Null, Value::Number)))
    }

    fn visit_str<E>(self, value: &str) -> Result<Self::Value, E> {
        Ok(self.value(value))
    }

    fn visit_string<E>(self, value: String) -> Result<Self::Value, E> {
        Ok(self.value(value))
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(self.value(Value::Null))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let mut list = Vec::new();
        loop {
            match seq.next_element_seed(StrictReading(self.0))? {
                None => return Ok(self.value(list)),
                Some(Ok(each)) => list.push(each.0),
                Some(Err(why)) => {
                    while seq.next_element::<IgnoredAny>()?.is_some() {}
                    return Ok(Err(why));
                }
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut object = Map::new();
        while let Some(key) = map.next_key::<String>()? {
            let fault = if object.contains_key(&key) {
                map.next_value::<IgnoredAny>()?;
                StrictFault(format!("the key `{}` is repeated in one object", key.chars().take(80).collect::<String>()))
            } else {
                match map.next_value_seed(StrictReading(self.0))? {
                    Ok(value) => {
                        object.insert(key, value.0);
                        continue;
                    }
                    Err(why) => why,
                }
            };
            while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
            return Ok(Err(fault));
        }
        Ok(self.value(object))
    }
}
