//! The layout of values on the wire: little-endian numbers, strings with a length of two bytes, data with one of four.
//! Used by the messages; bytes in, values out.

use bytes::Bytes;

/// The message is shorter than its fields, has a string that is not UTF-8, or bytes after its last field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

/// The body of a message, read from its beginning.
pub struct Fields(Bytes);

impl Fields {
    /// The fields of a body.
    pub fn new(body: Bytes) -> Fields {
        Fields(body)
    }

    fn bytes(&mut self, count: usize) -> Result<Bytes, Malformed> {
        if count > self.0.len() {
            return Err(Malformed);
        }
        Ok(self.0.split_to(count))
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let bytes = self.bytes(N)?;
        bytes.as_ref().try_into().map_err(|_| Malformed)
    }

    /// The next field.
    pub fn take<T: Field>(&mut self) -> Result<T, Malformed> {
        T::take(self)
    }

    /// Refuses what stands after the last field.
    pub fn end(self) -> Result<(), Malformed> {
        if self.0.is_empty() { Ok(()) } else { Err(Malformed) }
    }
}

/// A value with a layout.
pub trait Field: Sized {
    /// Reads it.
    fn take(fields: &mut Fields) -> Result<Self, Malformed>;
    /// Appends it.
    fn put(&self, message: &mut Vec<u8>);
}

macro_rules! numbers {
    ($($number:ty),*) => {
        $(impl Field for $number {
            fn take(fields: &mut Fields) -> Result<Self, Malformed> {
                Ok(<$number>::from_le_bytes(fields.array()?))
            }

            fn put(&self, message: &mut Vec<u8>) {
                message.extend_from_slice(&self.to_le_bytes());
            }
        })*
    };
}

numbers!(u8, u16, u32, u64);

impl Field for String {
    fn take(fields: &mut Fields) -> Result<Self, Malformed> {
        let length: u16 = fields.take()?;
        let bytes = fields.bytes(length.into())?;
        String::from_utf8(bytes.into()).map_err(|_| Malformed)
    }

    /// A string that is too long for its length is cut; names and versions never are.
    fn put(&self, message: &mut Vec<u8>) {
        let mut length = self.len().min(u16::MAX.into());
        while !self.is_char_boundary(length) {
            length -= 1;
        }
        (length as u16).put(message);
        message.extend_from_slice(&self.as_bytes()[..length]);
    }
}

/// Data of a read, a write or a directory.
impl Field for Bytes {
    fn take(fields: &mut Fields) -> Result<Self, Malformed> {
        let length: u32 = fields.take()?;
        fields.bytes(usize::try_from(length).map_err(|_| Malformed)?)
    }

    fn put(&self, message: &mut Vec<u8>) {
        (self.len() as u32).put(message);
        message.extend_from_slice(self);
    }
}

/// The names of a walk, or the qids that it found.
impl<T: Field> Field for Vec<T> {
    fn take(fields: &mut Fields) -> Result<Self, Malformed> {
        let count: u16 = fields.take()?;
        (0..count).map(|_| fields.take()).collect()
    }

    fn put(&self, message: &mut Vec<u8>) {
        (self.len() as u16).put(message);
        self.iter().for_each(|one| one.put(message));
    }
}
