//! The binary form of objects, in which the API server keeps them: less work than JSON for it to
//! write, and for us to read.
//!
//! The form has numbers where JSON has names. [`forms`] says which is which, and [`read`] makes of
//! bytes and a form what `serde` reads, so that objects are declared once, by their JSON. A form
//! may have [`Form::all`] its fields: one that is not among them cannot be read, and whoever asked
//! asks again for JSON, where it has a name.

mod forms;
mod read;
#[cfg(test)]
mod tests;
#[cfg(test)]
pub mod write;

pub use forms::STATUS;
pub use read::Unreadable;

use crate::object::{Node, Pod};
use http::{Response, header};
use serde::Deserialize;
use serde::de::DeserializeOwned;

/// What the API server is told to answer with, where it can.
pub const ACCEPT: &str = "application/vnd.kubernetes.protobuf,application/json";
/// What an answer in this form calls itself.
const CONTENT_TYPE: &str = "application/vnd.kubernetes.protobuf";
/// How every object begins.
const MAGIC: &[u8] = b"k8s\0";
/// Bytes before each event of a watch, which tell how long it is.
const LENGTH: usize = 4;

/// The fields of a kind of object.
#[derive(Debug)]
pub struct Form {
    fields: &'static [Field],
    /// Whether those are all: a field of another number then makes the object unreadable.
    all: bool,
}

impl Form {
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
    kind: Kind,
    count: Count,
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    Text,
    Number,
    Flag,
    /// In JSON the text of a moment.
    Time,
    /// In JSON its text.
    Quantity,
    Object(&'static Form),
    /// An object whose fields are, in JSON, those of the object around it.
    Inline(&'static Form),
    /// Nobody looks into it.
    Unread,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Count {
    One,
    List,
    /// By text.
    Map,
}

/// A kind of object and lists of it.
#[derive(Debug)]
pub struct Kinds {
    pub one: &'static Form,
    pub list: &'static Form,
}

/// What can be read in binary as well as in JSON.
pub trait Binary: DeserializeOwned {
    const KINDS: &'static Kinds;
}

impl Binary for Pod {
    const KINDS: &'static Kinds = &forms::PODS;
}

impl Binary for Node {
    const KINDS: &'static Kinds = &forms::NODES;
}

/// Whether an answer says that it is in this form.
pub fn is_told_of<B>(answer: &Response<B>) -> bool {
    let kind = answer.headers().get(header::CONTENT_TYPE);
    kind.is_some_and(|kind| kind.as_bytes().starts_with(CONTENT_TYPE.as_bytes()))
}

/// Whether these bytes are an object in this form.
pub fn is_binary(bytes: &[u8]) -> bool {
    bytes.starts_with(MAGIC)
}

/// An object as it comes from the API server.
pub fn decode<'a, T: Deserialize<'a>>(form: &'static Form, object: &'a [u8]) -> read::Result<T> {
    let wrapped = object.strip_prefix(MAGIC).ok_or(Unreadable::Magic)?;
    read::object(form, read::field(wrapped, forms::WRAPPED)?.unwrap_or_default())
}

/// An event of a watch: its kind, and its object.
pub fn event(event: &[u8]) -> read::Result<(&str, &[u8])> {
    let kind = read::field(event, forms::EVENT_KIND)?.unwrap_or_default();
    let kind = str::from_utf8(kind).map_err(|_| Unreadable::Text)?;
    let object = read::field(event, forms::EVENT_OBJECT)?.unwrap_or_default();
    Ok((kind, read::field(object, forms::RAW)?.unwrap_or_default()))
}

/// The first event of these bytes and what comes after it; nothing where it has not come whole.
pub fn frame(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<LENGTH>()?;
    rest.split_at_checked(usize::try_from(u32::from_be_bytes(*length)).ok()?)
}
