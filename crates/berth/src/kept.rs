//! Settings of servers: what they are, and how long something is kept.

use crate::fail::{Failure, Result};
use berth_api::wire::ConfigEntry;
use berth_model::{Bytes, Span};

/// How long what is never let go is kept.
pub const FOREVER: &str = "forever";

/// A setting, and where it comes from.
pub fn entry(key: &str, value: String, is_default: bool) -> ConfigEntry {
    let source = if is_default { "default" } else { "flag or environment" }.to_owned();
    ConfigEntry { key: key.to_owned(), value, source }
}

/// Nothing for what is never let go.
pub fn keep(flag: &str, text: &str) -> Result<Option<Span>> {
    if text == FOREVER {
        return Ok(None);
    }
    let span = text.parse::<Span>().ok().filter(|span| *span >= Span::days(1));
    let wrong =
        || format!("{flag}: found `{text}`, expected a day or more such as 90d, or forever");
    span.map(Some).ok_or_else(|| Failure::usage(wrong()))
}

/// The same, but zero is also valid.
pub fn keep_any(flag: &str, text: &str) -> Result<Option<Span>> {
    if text == FOREVER {
        return Ok(None);
    }
    let span = text.parse::<Span>().ok().filter(|span| span.0 >= 0);
    let wrong = || format!("{flag}: found `{text}`, expected a time such as 30d, or forever");
    span.map(Some).ok_or_else(|| Failure::usage(wrong()))
}

/// Nothing for what may be as large as it likes.
pub fn keep_size(flag: &str, text: &str) -> Result<Option<Bytes>> {
    if text == "all" {
        return Ok(None);
    }
    let size = text.parse::<Bytes>().ok().filter(|size| size.0 > 0);
    let wrong = || format!("{flag}: found `{text}`, expected a size such as 50GiB, or all");
    size.map(Some).ok_or_else(|| Failure::usage(wrong()))
}
