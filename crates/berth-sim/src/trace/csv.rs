//! One line of CSV text as fields, and a field as CSV text.
//!
//! The `csv` crate reads on over the end of a line until a quote closes, and takes text after a
//! closing quote as it comes. A trace with such a mistake is to be refused at the line it is in.

use super::error::expected;
use std::borrow::Cow;

/// Why a line has no fields.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SplitError {
    #[error("a quote is not closed on this line")]
    OpenQuote,
    #[error("{}", expected(rest, "a comma after the closing quote"))]
    AfterQuote { rest: String },
}

/// The fields of a line. A field in quotes may hold commas, and a quote as two.
pub fn split(line: &str) -> Result<Vec<Cow<'_, str>>, SplitError> {
    if !line.contains('"') {
        return Ok(line.split(',').map(Cow::Borrowed).collect());
    }
    let mut fields = Vec::new();
    let mut rest = line;
    loop {
        let (field, after) = match rest.strip_prefix('"') {
            None => {
                let end = rest.find(',').unwrap_or(rest.len());
                (Cow::Borrowed(&rest[..end]), &rest[end..])
            }
            Some(quoted) => unquote(quoted)?,
        };
        fields.push(field);
        match after.strip_prefix(',') {
            Some(next) => rest = next,
            None if after.is_empty() => return Ok(fields),
            None => return Err(SplitError::AfterQuote { rest: after.to_owned() }),
        }
    }
}

/// What is inside the quotes, and what follows them.
fn unquote(text: &str) -> Result<(Cow<'_, str>, &str), SplitError> {
    let mut inside = String::new();
    let mut rest = text;
    loop {
        let end = rest.find('"').ok_or(SplitError::OpenQuote)?;
        inside.push_str(&rest[..end]);
        rest = &rest[end + 1..];
        match rest.strip_prefix('"') {
            Some(next) => {
                inside.push('"');
                rest = next;
            }
            None => return Ok((Cow::Owned(inside), rest)),
        }
    }
}

/// A field as it stands in a line.
pub fn quote(text: &str) -> Cow<'_, str> {
    match text.contains([',', '"']) {
        true => Cow::Owned(format!("\"{}\"", text.replace('"', "\"\""))),
        false => Cow::Borrowed(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_in_quotes_may_hold_commas_and_quotes() {
        assert_eq!(split("a,\"b,c\",\"d\"\"e\",").unwrap(), ["a", "b,c", "d\"e", ""]);
        assert!(split("\"open").unwrap_err().to_string().contains("not closed"));
        assert!(split("\"a\"b").unwrap_err().to_string().contains("expected a comma"));
    }

    #[test]
    fn a_quoted_field_is_read_back() {
        for text in ["a", "b,c", "d\"e", ""] {
            assert_eq!(split(&quote(text)).unwrap(), [text]);
        }
    }
}
