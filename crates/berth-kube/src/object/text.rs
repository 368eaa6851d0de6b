//! Text that is mostly short.

use serde::de::{Deserialize, Deserializer, Visitor};
use std::borrow::Borrow;
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Deref;

const ROOM: usize = 22;

/// Text of an object. Most of it is a word, such as `cpu` or `Exists`: up to 22 bytes are kept in
/// place, since the smallest allocation takes more room than the word.
#[derive(Clone)]
pub struct Text(Inner);

#[derive(Clone)]
enum Inner {
    Short { len: u8, bytes: [u8; ROOM] },
    Long(Box<str>),
}

impl Text {
    pub fn as_str(&self) -> &str {
        match &self.0 {
            Inner::Short { len, bytes } => std::str::from_utf8(&bytes[..usize::from(*len)])
                .expect("short text is a copy of a whole text"),
            Inner::Long(text) => text,
        }
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Text {
        let mut bytes = [0; ROOM];
        match (u8::try_from(text.len()), bytes.get_mut(..text.len())) {
            (Ok(len), Some(room)) => {
                room.copy_from_slice(text.as_bytes());
                Text(Inner::Short { len, bytes })
            }
            _ => Text(Inner::Long(text.into())),
        }
    }
}

impl From<String> for Text {
    fn from(text: String) -> Text {
        if text.len() <= ROOM { Text::from(text.as_str()) } else { Text(Inner::Long(text.into())) }
    }
}

impl Default for Text {
    fn default() -> Text {
        Text::from("")
    }
}

impl Deref for Text {
    type Target = str;
    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl Borrow<str> for Text {
    fn borrow(&self) -> &str {
        self.as_str()
    }
}

impl PartialEq for Text {
    fn eq(&self, other: &Text) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for Text {}

impl PartialOrd for Text {
    fn partial_cmp(&self, other: &Text) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Text {
    fn cmp(&self, other: &Text) -> Ordering {
        self.as_str().cmp(other.as_str())
    }
}

impl Hash for Text {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_str().hash(state);
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self.as_str(), f)
    }
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Text, D::Error> {
        struct Any;
        impl Visitor<'_> for Any {
            type Value = Text;
            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("text")
            }
            fn visit_str<E>(self, text: &str) -> Result<Text, E> {
                Ok(Text::from(text))
            }
            fn visit_string<E>(self, text: String) -> Result<Text, E> {
                Ok(Text::from(text))
            }
        }
        deserializer.deserialize_string(Any)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_every_length_stays_the_same() {
        for len in 0..50 {
            let text = "é1".repeat(len);
            assert_eq!(Text::from(text.as_str()).as_str(), text);
            assert_eq!(Text::from(text.clone()), Text::from(text.as_str()));
        }
        assert_eq!(size_of::<Text>(), 24);
    }

    #[test]
    fn text_is_ordered_as_text_wherever_it_is_kept() {
        let mut texts =
            ["b", "a text that is too long to be kept in place", "", "a"].map(Text::from);
        texts.sort();
        let sorted = texts.each_ref().map(Text::as_str);
        assert_eq!(sorted, ["", "a", "a text that is too long to be kept in place", "b"]);
    }
}
