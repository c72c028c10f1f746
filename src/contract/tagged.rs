//! `{"op": …, "arguments": …}` as serde sees it, without building that object: the arguments stay where they are, because
//! the journal needs them too.

use serde::de::value::StrDeserializer;
use serde::de::{DeserializeSeed, Deserializer, MapAccess, Visitor};
use serde::forward_to_deserialize_any;
use serde_json::{Error, Value};

pub struct TaggedCall<'a> {
    pub op: &'a str,
    pub arguments: Option<&'a Value>,
}

impl<'de> Deserializer<'de> for TaggedCall<'de> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_map(Entries { op: Some(self.op), arguments: self.arguments })
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

/// The two entries, the tag first.
struct Entries<'a> {
    op: Option<&'a str>,
    arguments: Option<&'a Value>,
}

impl<'de> MapAccess<'de> for Entries<'de> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Error> {
        let key = match (self.op, self.arguments) {
            (Some(_), _) => "op",
            (None, Some(_)) => "arguments",
            (None, None) => return Ok(None),
        };
        seed.deserialize(StrDeserializer::new(key)).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Error> {
        match (self.op.take(), &mut self.arguments) {
            (Some(op), _) => seed.deserialize(StrDeserializer::new(op)),
            (None, arguments) => seed.deserialize(arguments.take().unwrap_or(&Value::Null)),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(tag = "op", content = "arguments", rename_all = "snake_case")]
    enum Command {
        List,
        Put { name: String, tags: Vec<String>, any: Value },
    }

    #[test]
    fn a_call_is_read_as_its_object_would_be() {
        let arguments = json!({"name": "ä", "tags": ["x"], "any": {"deep": [1, null]}});
        let bad = json!({"name": 3});
        for (op, arguments) in
            [("put", Some(&arguments)), ("put", Some(&bad)), ("put", None), ("list", None), ("other", Some(&arguments))]
        {
            let mut whole = json!({ "op": op });
            if let Some(arguments) = arguments {
                whole["arguments"] = arguments.clone();
            }
            let wanted = serde_json::from_value::<Command>(whole).map_err(|error| error.to_string());
            let found = Command::deserialize(TaggedCall { op, arguments }).map_err(|error| error.to_string());
            assert_eq!(found, wanted);
        }
    }
}
