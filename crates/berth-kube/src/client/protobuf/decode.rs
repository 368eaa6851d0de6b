//! Bytes and a form, as `serde` reads them.

use super::{Cardinality, Field, FieldType, MessageSchema};
use serde::de::value::BorrowedStrDeserializer;
use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, Error, IntoDeserializer, MapAccess, SeqAccess,
    Visitor,
};
use serde::forward_to_deserialize_any;
use std::borrow::Cow;
use std::fmt::Display;

pub type Result<T> = std::result::Result<T, DecodeError>;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    #[error("it ends in the middle of a field")]
    Cut,
    #[error("a field is written in a way that is not known")]
    Wire,
    #[error("a field is of another kind than expected")]
    FieldType,
    #[error("field {number} beside `{beside}` is not known")]
    Field { number: u32, beside: &'static str },
    #[error("a string is not UTF-8")]
    Text,
    #[error("it does not begin as objects of the API server do")]
    Magic,
    #[error("{0}")]
    Custom(String),
}

impl Error for DecodeError {
    fn custom<T: Display>(says: T) -> DecodeError {
        DecodeError::Custom(says.to_string())
    }
}

/// What is written for a field.
#[derive(Debug, Clone, Copy)]
enum Written<'a> {
    Number(u64),
    Bytes(&'a [u8]),
    /// Floating-point numbers; nothing we read has any.
    Fixed,
}

impl<'a> Written<'a> {
    fn bytes(self) -> Result<&'a [u8]> {
        match self {
            Written::Bytes(bytes) => Ok(bytes),
            Written::Number(_) | Written::Fixed => Err(DecodeError::FieldType),
        }
    }

    fn number(self) -> Result<u64> {
        match self {
            Written::Number(number) => Ok(number),
            Written::Bytes(_) | Written::Fixed => Err(DecodeError::FieldType),
        }
    }
}

/// The fields of an object that have not been looked at.
#[derive(Debug, Clone, Copy)]
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn next(&mut self) -> Result<Option<(u32, Written<'a>)>> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let tag = self.number()?;
        let number = u32::try_from(tag >> 3).map_err(|_| DecodeError::Wire)?;
        let written = match tag & 7 {
            0 => Written::Number(self.number()?),
            1 => self.take(8).map(|_| Written::Fixed)?,
            2 => {
                let length = usize::try_from(self.number()?).map_err(|_| DecodeError::Cut)?;
                Written::Bytes(self.take(length)?)
            }
            5 => self.take(4).map(|_| Written::Fixed)?,
            _ => return Err(DecodeError::Wire),
        };
        Ok(Some((number, written)))
    }

    /// Seven bits at a time, the lowest first; the eighth says that more follow.
    fn number(&mut self) -> Result<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.0.split_first().ok_or(DecodeError::Cut)?;
            self.0 = rest;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(DecodeError::Wire)
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or(DecodeError::Cut)?;
        self.0 = rest;
        Ok(taken)
    }
}

/// The bytes of one field; the last, where it is there more than once.
pub fn field(object: &[u8], wanted: u32) -> Result<Option<&[u8]>> {
    let (mut fields, mut found) = (Fields(object), None);
    while let Some((number, written)) = fields.next()? {
        match written {
            Written::Bytes(bytes) if number == wanted => found = Some(bytes),
            _ => {}
        }
    }
    Ok(found)
}

/// An object without what is wrapped around it.
pub fn object<'a, T: Deserialize<'a>>(form: &'static MessageSchema, bytes: &'a [u8]) -> Result<T> {
    T::deserialize(Value { kind: FieldType::Object(form), written: Written::Bytes(bytes) })
}

/// One value, of a kind that is known.
struct Value<'a> {
    kind: FieldType,
    written: Written<'a>,
}

impl<'a> Value<'a> {
    /// A timestamp that was never set is written as nothing.
    fn is_null(&self) -> bool {
        matches!((self.kind, self.written), (FieldType::Time, Written::Bytes([])))
    }

    fn text(&self) -> Result<Cow<'a, str>> {
        let bytes = self.written.bytes()?;
        match self.kind {
            FieldType::Text => Ok(String::from_utf8_lossy(bytes)),
            FieldType::Time => timestamp(bytes).map(Cow::Owned),
            FieldType::Quantity => {
                let written = field(bytes, super::schema::QUANTITY)?;
                Ok(String::from_utf8_lossy(written.unwrap_or_default()))
            }
            _ => Err(DecodeError::FieldType),
        }
    }

    fn object(&self) -> Result<Object<'a>> {
        let (FieldType::Object(form) | FieldType::Inline(form)) = self.kind else {
            return Err(DecodeError::FieldType);
        };
        let fields = Fields(self.written.bytes()?);
        Ok(Object { fields, form, seen: 0, around: None, next: None })
    }
}

/// Structs and texts have ways of their own beside `deserialize_any`: it is compiled for every type
/// that is read, with all that a value can be.
impl<'de> Deserializer<'de> for Value<'de> {
    type Error = DecodeError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        match self.kind {
            _ if self.is_null() => visitor.visit_unit(),
            FieldType::Text | FieldType::Time | FieldType::Quantity => {
                visit_text(visitor, self.text()?)
            }
            // A negative number is written in 64 bits, also in a field of 32.
            FieldType::Number => visitor.visit_i64(self.written.number()?.cast_signed()),
            FieldType::Flag => visitor.visit_bool(self.written.number()? != 0),
            FieldType::Object(_) | FieldType::Inline(_) => visitor.visit_map(self.object()?),
            FieldType::Unread => visitor.visit_unit(),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value> {
        // A field that is not in the form would read as absent without any error.
        debug_assert!(
            matches!(self.kind, FieldType::Object(form) if fields.iter().all(|field| form.has(field))),
            "{name} has a field without a number"
        );
        visitor.visit_map(self.object()?)
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        if self.is_null() { visitor.visit_unit() } else { visit_text(visitor, self.text()?) }
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.deserialize_str(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        if self.is_null() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char bytes byte_buf
        unit unit_struct newtype_struct seq tuple tuple_struct map enum identifier
    }
}

/// What is no text has been replaced, as the server does in JSON: it lets annotations through that
/// are none.
fn visit_text<'de, V: Visitor<'de>>(visitor: V, text: Cow<'de, str>) -> Result<V::Value> {
    match text {
        Cow::Borrowed(text) => visitor.visit_borrowed_str(text),
        Cow::Owned(text) => visitor.visit_string(text),
    }
}

fn timestamp(bytes: &[u8]) -> Result<String> {
    let (mut fields, mut seconds) = (Fields(bytes), 0);
    while let Some((number, written)) = fields.next()? {
        // The parts of a second are not in JSON either.
        if let (super::schema::SECONDS, Written::Number(since)) = (number, written) {
            seconds = since.cast_signed();
        }
    }
    // One that cannot be counted is later than all that can, as in JSON.
    Ok(jiff::Timestamp::from_second(seconds).unwrap_or(jiff::Timestamp::MAX).to_string())
}

/// The fields of an object, by their names in JSON.
struct Object<'a> {
    fields: Fields<'a>,
    form: &'static MessageSchema,
    /// Which lists and maps were returned, by their place in the form.
    seen: u64,
    /// What of the object around it is still to come, while an inline one is read.
    around: Option<(Fields<'a>, &'static MessageSchema, u64)>,
    /// The value that belongs to the key returned last.
    next: Option<(&'static Field, Written<'a>)>,
}

impl Object<'_> {
    /// Goes on to the next field that has a name.
    fn advance(&mut self) -> Result<Option<&'static str>> {
        loop {
            let Some((number, written)) = self.fields.next()? else {
                let Some((fields, form, seen)) = self.around.take() else { return Ok(None) };
                (self.fields, self.form, self.seen) = (fields, form, seen);
                continue;
            };
            let place = self.form.fields.iter().position(|field| field.number == number);
            let Some(place) = place else {
                if self.form.all {
                    let beside = self.form.fields.first().map_or("", |field| field.name);
                    return Err(DecodeError::Field { number, beside });
                }
                continue;
            };
            let field = &self.form.fields[place];
            match (field.kind, field.count) {
                (FieldType::Inline(form), Cardinality::One) => {
                    let inner = written.bytes()?;
                    self.around = Some((self.fields, self.form, self.seen));
                    (self.fields, self.form, self.seen) = (Fields(inner), form, 0);
                    continue;
                }
                (_, Cardinality::One) => {}
                // Returned at the first of them, with all that follow.
                (_, Cardinality::List | Cardinality::Map) => {
                    if self.seen & (1 << place) != 0 {
                        continue;
                    }
                    self.seen |= 1 << place;
                }
            }
            self.next = Some((field, written));
            return Ok(Some(field.name));
        }
    }
}

impl<'de> MapAccess<'de> for Object<'de> {
    type Error = DecodeError;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>> {
        match self.advance()? {
            Some(name) => seed.deserialize(BorrowedStrDeserializer::new(name)).map(Some),
            None => Ok(None),
        }
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value> {
        let (field, written) = self.next.take().ok_or(DecodeError::FieldType)?;
        match field.count {
            Cardinality::One => seed.deserialize(Value { kind: field.kind, written }),
            Cardinality::List | Cardinality::Map => {
                seed.deserialize(Many { field, next: Some(written), rest: self.fields })
            }
        }
    }
}

/// A field that is written once for each of its values.
struct Many<'a> {
    field: &'static Field,
    next: Option<Written<'a>>,
    rest: Fields<'a>,
}

impl<'a> Many<'a> {
    fn next(&mut self) -> Result<Option<Written<'a>>> {
        if let Some(written) = self.next.take() {
            return Ok(Some(written));
        }
        while let Some((number, written)) = self.rest.next()? {
            if number == self.field.number {
                return Ok(Some(written));
            }
        }
        Ok(None)
    }
}

impl<'de> Deserializer<'de> for Many<'de> {
    type Error = DecodeError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        match self.field.count {
            Cardinality::Map => visitor.visit_map(Entries { many: self, value: &[] }),
            Cardinality::One | Cardinality::List => visitor.visit_seq(self),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        visitor.visit_some(self)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf
        unit unit_struct newtype_struct seq tuple tuple_struct map struct enum identifier
    }
}

impl<'de> SeqAccess<'de> for Many<'de> {
    type Error = DecodeError;

    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>> {
        let Some(written) = self.next()? else { return Ok(None) };
        seed.deserialize(Value { kind: self.field.kind, written }).map(Some)
    }
}

/// Entries of a map: objects of a key and a value.
struct Entries<'a> {
    many: Many<'a>,
    value: &'a [u8],
}

impl<'a> Entries<'a> {
    /// Goes on to the next entry and returns its key.
    fn advance(&mut self) -> Result<Option<Cow<'a, str>>> {
        let Some(written) = self.many.next()? else { return Ok(None) };
        let entry = written.bytes()?;
        self.value = field(entry, super::schema::ENTRY_VALUE)?.unwrap_or_default();
        let key = field(entry, super::schema::ENTRY_KEY)?.unwrap_or_default();
        Ok(Some(String::from_utf8_lossy(key)))
    }
}

impl<'de> MapAccess<'de> for Entries<'de> {
    type Error = DecodeError;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>> {
        match self.advance()? {
            Some(Cow::Borrowed(key)) => {
                seed.deserialize(BorrowedStrDeserializer::new(key)).map(Some)
            }
            Some(Cow::Owned(key)) => seed.deserialize(key.into_deserializer()).map(Some),
            None => Ok(None),
        }
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value> {
        let written = Written::Bytes(self.value);
        seed.deserialize(Value { kind: self.many.field.kind, written })
    }
}
