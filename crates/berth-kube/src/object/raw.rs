//! A quantity as it was written.

use super::Text;
use serde::de::{Deserialize, Deserializer, Visitor};
use std::fmt;

/// The text of a quantity; a bare number is its text. What it amounts to is for
/// [`Quantity`](crate::quantity::Quantity).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Raw(Text);

impl Raw {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for Raw {
    fn from(text: &str) -> Raw {
        Raw(text.into())
    }
}

impl fmt::Display for Raw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Raw, D::Error> {
        struct Written;
        impl Visitor<'_> for Written {
            type Value = Raw;
            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("a quantity such as 500m, 2 or 64Gi")
            }
            fn visit_str<E>(self, text: &str) -> Result<Raw, E> {
                Ok(Raw(text.into()))
            }
            fn visit_u64<E>(self, n: u64) -> Result<Raw, E> {
                Ok(Raw(n.to_string().into()))
            }
            fn visit_i64<E>(self, n: i64) -> Result<Raw, E> {
                Ok(Raw(n.to_string().into()))
            }
            fn visit_f64<E>(self, n: f64) -> Result<Raw, E> {
                Ok(Raw(n.to_string().into()))
            }
        }
        deserializer.deserialize_any(Written)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_texts_read_alike() {
        for (json, text) in [(r#""64Gi""#, "64Gi"), ("8", "8"), ("0.5", "0.5"), ("-1", "-1")] {
            assert_eq!(serde_json::from_str::<Raw>(json).unwrap().as_str(), text);
        }
    }
}
