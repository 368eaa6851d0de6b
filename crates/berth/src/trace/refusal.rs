//! What a simulation was asked for and cannot do, each with a code that stays the same.

use std::fmt;

#[derive(Debug)]
pub struct Refusal {
    pub code: &'static str,
    pub message: String,
}

impl std::error::Error for Refusal {}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.message)
    }
}

pub fn refuse(code: &'static str, message: impl Into<String>) -> anyhow::Error {
    Refusal { code, message: message.into() }.into()
}
