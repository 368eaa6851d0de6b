//! The binary form of objects, in which the API server keeps them: less work than JSON for it to
//! write, and for us to read.
//!
//! The form has numbers where JSON has names. [`schema`] says which is which, and [`decode`] makes of
//! bytes and a form what `serde` reads, so that objects are declared once, by their JSON. A form
//! may have [`MessageSchema::all`] its fields: one that is not among them cannot be read, and whoever asked
//! asks again for JSON, where it has a name.

mod decode;
#[cfg(test)]
pub mod encode;
mod schema;
#[cfg(test)]
mod tests;

pub use decode::DecodeError;
pub use schema::{POD_RESOURCES, STATUS};

use crate::object::{Node, Pod, PodAddress};
use http::{Response, header};
use serde::Deserialize;
use serde::de::DeserializeOwned;

/// What Berth asks the API server to answer with, where it can.
pub const ACCEPT: &str = "application/vnd.kubernetes.protobuf,application/json";
/// What an answer in this form calls itself.
const CONTENT_TYPE: &str = "application/vnd.kubernetes.protobuf";
/// How every object begins.
const MAGIC: &[u8] = b"k8s\0";
/// Bytes before each event of a watch, which tell how long it is.
const LENGTH: usize = 4;

/// The fields of a kind of object.
#[derive(Debug)]
pub struct MessageSchema {
    fields: &'static [Field],
    /// Whether those are all: a field of another number then makes the object unreadable.
    all: bool,
}

impl MessageSchema {
    /// Whether a field has this name in JSON.
    fn has(&self, name: &str) -> bool {
        self.fields.iter().any(|field| field.name == name)
    }
}

#[derive(Debug)]
struct Field {
    number: u32,
    /// In JSON.
    name: &'static str,
    kind: FieldType,
    count: Cardinality,
}

#[derive(Debug, Clone, Copy)]
enum FieldType {
    Text,
    Number,
    Flag,
    /// In JSON the text of a timestamp.
    Time,
    /// In JSON its text.
    Quantity,
    Object(&'static MessageSchema),
    /// An object whose fields are, in JSON, those of the object around it.
    Inline(&'static MessageSchema),
    /// Berth does not read its contents.
    Unread,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cardinality {
    One,
    List,
    /// By text.
    Map,
}

/// A kind of object and lists of it.
#[derive(Debug)]
pub struct ObjectSchema {
    pub one: &'static MessageSchema,
    pub list: &'static MessageSchema,
}

/// What can be read in binary as well as in JSON.
pub trait ProtobufObject: DeserializeOwned {
    const SCHEMA: &'static ObjectSchema;
}

impl ProtobufObject for Pod {
    const SCHEMA: &'static ObjectSchema = &schema::PODS;
}

impl ProtobufObject for PodAddress {
    const SCHEMA: &'static ObjectSchema = &schema::POD_ADDRESSES;
}

impl ProtobufObject for Node {
    const SCHEMA: &'static ObjectSchema = &schema::NODES;
}

/// Whether an answer says that it is in this form.
pub fn is_protobuf_response<B>(answer: &Response<B>) -> bool {
    let kind = answer.headers().get(header::CONTENT_TYPE);
    kind.is_some_and(|kind| kind.as_bytes().starts_with(CONTENT_TYPE.as_bytes()))
}

/// Whether these bytes are an object in this form.
pub fn is_protobuf(bytes: &[u8]) -> bool {
    bytes.starts_with(MAGIC)
}

/// An object as it comes from the API server.
pub fn decode<'a, T: Deserialize<'a>>(
    form: &'static MessageSchema,
    object: &'a [u8],
) -> decode::Result<T> {
    let wrapped = object.strip_prefix(MAGIC).ok_or(DecodeError::Magic)?;
    decode::object(form, decode::field(wrapped, schema::WRAPPED)?.unwrap_or_default())
}

/// A message that nothing is wrapped around.
pub fn message<'a, T: Deserialize<'a>>(
    form: &'static MessageSchema,
    bytes: &'a [u8],
) -> decode::Result<T> {
    decode::object(form, bytes)
}

/// An event of a watch: its kind, and its object.
pub fn event(event: &[u8]) -> decode::Result<(&str, &[u8])> {
    let kind = decode::field(event, schema::EVENT_KIND)?.unwrap_or_default();
    let kind = str::from_utf8(kind).map_err(|_| DecodeError::Text)?;
    let object = decode::field(event, schema::EVENT_OBJECT)?.unwrap_or_default();
    Ok((kind, decode::field(object, schema::RAW)?.unwrap_or_default()))
}

/// The first event of these bytes and what comes after it; nothing where it has not come whole.
pub fn frame(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<LENGTH>()?;
    rest.split_at_checked(usize::try_from(u32::from_be_bytes(*length)).ok()?)
}
