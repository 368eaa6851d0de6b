//! A scanner for filters and `order_by` that tracks its position.

use crate::error::{Error, Result};

/// The maximum length of a filter or of `order_by`.
pub const MOST_BYTES: usize = 65_536;

pub struct Scan<'a> {
    what: &'static str,
    text: &'a str,
    at: usize,
}

/// A key or a word, and whether it was quoted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    pub text: String,
    pub quoted: bool,
}

impl<'a> Scan<'a> {
    pub fn new(what: &'static str, text: &'a str) -> Result<Scan<'a>> {
        if text.len() > MOST_BYTES {
            return Err(Error::invalid(format!(
                "The {what} has {} bytes; it may have {MOST_BYTES}",
                text.len()
            )));
        }
        Ok(Scan { what, text, at: 0 })
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    pub fn space(&mut self) {
        self.at = self.text.len() - self.rest().trim_start().len();
    }

    pub fn is_over(&mut self) -> bool {
        self.space();
        self.rest().is_empty()
    }

    /// The position of the next character, from 1.
    pub fn position(&self) -> usize {
        self.text[..self.at].chars().count() + 1
    }

    /// The next token, for an error message.
    pub fn found(&self) -> String {
        let rest = self.rest();
        let mut word: String = rest.chars().take_while(|c| !c.is_whitespace()).take(40).collect();
        if word.is_empty() {
            word = rest.chars().take(1).collect();
        }
        if word.is_empty() { "the end".to_owned() } else { format!("'{word}'") }
    }

    pub fn expected(&self, what: &str) -> Error {
        Error::invalid(format!(
            "Invalid clause(s) in {} string '{}': expected {what} at character {}, found {}",
            self.what,
            self.text.chars().take(200).collect::<String>(),
            self.position(),
            self.found()
        ))
    }

    /// An error at a position.
    pub fn wrong(&self, position: usize, why: &str) -> Error {
        Error::invalid(format!("{why} (at character {position} of the {})", self.what))
    }

    pub fn take(&mut self, one: char) -> bool {
        self.space();
        let is_next = self.rest().starts_with(one);
        if is_next {
            self.at += one.len_utf8();
        }
        is_next
    }

    /// A keyword in any case, as a whole word.
    pub fn keyword(&mut self, word: &str) -> bool {
        self.space();
        let rest = self.rest();
        let is_next = rest.get(..word.len()).is_some_and(|next| next.eq_ignore_ascii_case(word))
            && !rest[word.len()..].starts_with(|c: char| c.is_alphanumeric() || c == '_');
        if is_next {
            self.at += word.len();
        }
        is_next
    }

    /// The first of these operators that matches.
    pub fn sign(&mut self, signs: &[&'static str]) -> Option<&'static str> {
        self.space();
        let found = signs.iter().find(|sign| self.rest().starts_with(**sign))?;
        self.at += found.len();
        Some(found)
    }

    /// A text in these quotes, if it is the next token.
    pub fn quoted(&mut self, quotes: &[char]) -> Result<Option<String>> {
        let Some(quote) = self.rest().chars().next().filter(|c| quotes.contains(c)) else {
            return Ok(None);
        };
        let inner = &self.rest()[1..];
        let Some(end) = inner.find(quote) else {
            return Err(self.expected(&format!("a closing {quote} for the text that begins")));
        };
        self.at += end + 2;
        Ok(Some(inner[..end].to_owned()))
    }

    /// A word or a key in backticks or double quotes.
    pub fn word(&mut self) -> Result<Option<Word>> {
        if let Some(text) = self.quoted(&['`', '"'])? {
            return Ok(Some(Word { text, quoted: true }));
        }
        let rest = self.rest();
        let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len());
        if end == 0 {
            return Ok(None);
        }
        self.at += end;
        Ok(Some(Word { text: rest[..end].to_owned(), quoted: false }))
    }

    /// Whether a dot follows at once.
    pub fn dot(&mut self) -> bool {
        let is_next = self.rest().starts_with('.');
        self.at += usize::from(is_next);
        is_next
    }

    /// A number, if it is the next token.
    pub fn number(&mut self) -> Option<f64> {
        self.space();
        let rest = self.rest();
        let mut before = ' ';
        let part = |c: char| {
            let sign = matches!(c, '+' | '-') && matches!(before, ' ' | 'e' | 'E');
            let is_part = c.is_ascii_digit() || matches!(c, '.' | 'e' | 'E') || sign;
            before = c;
            !is_part
        };
        let end = rest.find(part).unwrap_or(rest.len());
        let has_digit = rest[..end].starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c));
        let ends = !rest[end..].starts_with(|c: char| c.is_alphanumeric() || c == '_');
        let value: f64 = rest[..end].parse().ok().filter(|_| has_digit && ends)?;
        self.at += end;
        Some(value)
    }
}
