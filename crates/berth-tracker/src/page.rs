//! Page tokens in the format of MLflow's server.

use crate::error::{Error, Result};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// The offset in a page token; 0 without a token.
pub fn offset(token: Option<&str>) -> Result<u64> {
    let Some(token) = token.filter(|token| !token.is_empty()) else { return Ok(0) };
    let decoded = STANDARD
        .decode(token)
        .map_err(|_| Error::invalid("Invalid page token, could not base64-decode"))?;
    let parsed: Option<serde_json::Value> = serde_json::from_slice(&decoded).ok();
    let offset = parsed.as_ref().and_then(|parsed| parsed.get("offset")?.as_u64());
    offset.filter(|offset| *offset <= 1 << 40).ok_or_else(|| {
        let shown = String::from_utf8_lossy(&decoded);
        let shown: String = shown.chars().take(100).collect();
        Error::invalid(format!("Invalid page token, decoded value={shown}"))
    })
}

pub fn token(offset: u64) -> String {
    STANDARD.encode(format!("{{\"offset\": {offset}}}"))
}

/// Truncates a list to a page and returns the token of the next. The caller reads one element more than
/// a page, which shows whether there is another.
pub fn cut<T>(mut found: Vec<T>, offset: u64, most: usize) -> (Vec<T>, Option<String>) {
    let more = found.len() > most;
    found.truncate(most);
    let next = more.then(|| token(offset + most as u64));
    (found, next)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_leads_to_its_page_and_what_is_none_is_refused() {
        assert_eq!(offset(None), Ok(0));
        assert_eq!(offset(Some("")), Ok(0));
        assert_eq!(offset(Some(&token(25_000))), Ok(25_000));
        let bad = |text: &str| offset(Some(text)).unwrap_err().message;
        assert!(bad("!!").contains("could not base64-decode"));
        assert!(bad(&STANDARD.encode("[1]")).contains("decoded value=[1]"));
        assert!(bad(&STANDARD.encode("{\"offset\":-1}")).contains("decoded value"));
    }

    #[test]
    fn only_a_page_with_more_behind_it_has_a_token() {
        assert_eq!(cut(vec![1, 2], 0, 2), (vec![1, 2], None));
        assert_eq!(cut(vec![1, 2, 3], 4, 2), (vec![1, 2], Some(token(6))));
    }
}
