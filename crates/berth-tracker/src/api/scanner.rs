//! A streaming JSON reader. It returns numbers as their digits.

use std::borrow::Cow;
use std::fmt;

/// Malformed JSON, or an unexpected type.
#[derive(Debug)]
pub struct Malformed {
    expected: &'static str,
    at: usize,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "expected {} at byte {}", self.expected, self.at)
    }
}

type Read<T> = Result<T, Malformed>;

/// The deepest nesting that the reader skips.
const MOST_DEPTH: usize = 64;

pub struct Scanner<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Scanner<'a> {
    pub fn new(bytes: &'a [u8]) -> Read<Scanner<'a>> {
        let text = std::str::from_utf8(bytes);
        let text =
            text.map_err(|error| Malformed { expected: "UTF-8", at: error.valid_up_to() })?;
        Ok(Scanner { text, at: 0 })
    }

    pub fn malformed(&self, expected: &'static str) -> Malformed {
        Malformed { expected, at: self.at }
    }

    /// The next byte after white space.
    pub fn peek(&mut self) -> Option<u8> {
        let rest = &self.text.as_bytes()[self.at..];
        let spaces = rest.iter().take_while(|byte| b" \t\r\n".contains(byte)).count();
        self.at += spaces;
        rest.get(spaces).copied()
    }

    fn take(&mut self, byte: u8, what: &'static str) -> Read<()> {
        if self.peek() != Some(byte) {
            return Err(self.malformed(what));
        }
        self.at += 1;
        Ok(())
    }

    fn word(&mut self, word: &'static str) -> Read<()> {
        self.peek();
        if !self.text[self.at..].starts_with(word) {
            return Err(self.malformed(word));
        }
        self.at += word.len();
        Ok(())
    }

    pub fn null(&mut self) -> Read<()> {
        self.word("null")
    }

    pub fn bool(&mut self) -> Read<bool> {
        let is = self.peek() == Some(b't');
        self.word(if is { "true" } else { "false" })?;
        Ok(is)
    }

    /// The digits of a number.
    pub fn number(&mut self) -> Read<&'a str> {
        self.peek();
        let rest = &self.text[self.at..];
        let part = |c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '.' | 'e' | 'E');
        let end = rest.find(|c| !part(c)).unwrap_or(rest.len());
        if !rest.starts_with(|c: char| c.is_ascii_digit() || c == '-') {
            return Err(self.malformed("a value"));
        }
        self.at += end;
        Ok(&rest[..end])
    }

    pub fn text(&mut self) -> Read<Cow<'a, str>> {
        self.take(b'"', "a text")?;
        let begin = self.at;
        let bytes = self.text.as_bytes();
        let mut escaped = false;
        loop {
            match bytes.get(self.at) {
                None => return Err(self.malformed("the end of a text")),
                Some(b'"') => break,
                Some(b'\\') => {
                    escaped = true;
                    self.at += 2;
                }
                Some(byte) if *byte < 0x20 => return Err(self.malformed("a printable character")),
                Some(_) => self.at += 1,
            }
        }
        self.at += 1;
        if !escaped {
            return Ok(Cow::Borrowed(&self.text[begin..self.at - 1]));
        }
        // With its quotes.
        let whole = self.text.get(begin - 1..self.at);
        let unescaped = whole.and_then(|whole| serde_json::from_str::<String>(whole).ok());
        unescaped.map(Cow::Owned).ok_or_else(|| self.malformed("a text before this"))
    }

    /// Calls a function for each field of an object.
    pub fn object(
        &mut self,
        mut field: impl FnMut(&mut Scanner<'a>, &str) -> Read<()>,
    ) -> Read<()> {
        self.take(b'{', "an object")?;
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(());
        }
        loop {
            self.peek();
            let name = self.text()?;
            self.take(b':', "a colon")?;
            self.peek();
            field(self, &name)?;
            if self.peek() != Some(b',') {
                return self.take(b'}', "a comma or the end of the object");
            }
            self.at += 1;
        }
    }

    /// Calls a function for each element of a list.
    pub fn array(&mut self, mut element: impl FnMut(&mut Scanner<'a>) -> Read<()>) -> Read<()> {
        self.take(b'[', "a list")?;
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(());
        }
        loop {
            self.peek();
            element(self)?;
            if self.peek() != Some(b',') {
                return self.take(b']', "a comma or the end of the list");
            }
            self.at += 1;
        }
    }

    /// Skips a value of any kind.
    pub fn skip(&mut self) -> Read<()> {
        self.skip_within(MOST_DEPTH)
    }

    fn skip_within(&mut self, depth: usize) -> Read<()> {
        if depth == 0 {
            return Err(self.malformed("less nesting"));
        }
        match self.peek() {
            Some(b'"') => self.text().map(drop),
            Some(b't' | b'f') => self.bool().map(drop),
            Some(b'n') => self.null(),
            Some(b'{') => self.object(|from, _| from.skip_within(depth - 1)),
            Some(b'[') => self.array(|from| from.skip_within(depth - 1)),
            _ => self.number().map(drop),
        }
    }

    /// Expects the end of the input.
    pub fn end(&mut self) -> Read<()> {
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(self.malformed("the end")),
        }
    }
}
