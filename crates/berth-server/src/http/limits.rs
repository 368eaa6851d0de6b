//! How long the parts of a request may be that people give as text. Each ends up in a query of the
//! database, which has limits of its own and knows no good words for them.

use super::answer::Failure;
use axum::http::{HeaderMap, HeaderName, Uri};
use berth_api::Code;
use berth_service::Fault;
use percent_encoding::percent_decode_str;

/// The longest address, with its query.
const ADDRESS: usize = 16 << 10;
/// The most parameters of a query; no route takes so many.
const PARAMETERS: usize = 32;
/// The longest name of something in a path: names of nodes and jobs are shorter.
const PART: usize = 512;
/// The longest value of a parameter.
const VALUE: usize = 1 << 10;
/// The longest value of those that are paths of files.
const FILE: usize = 4 << 10;
const FILES: &[&str] = &["here", "path"];
/// The longest key that stands for one request.
const KEY: usize = 255;

/// Refuses an address that is too long, in whole or in part, or that no database can look for.
pub fn check_address(uri: &Uri) -> Result<(), Failure> {
    let query = uri.query().unwrap_or_default();
    let whole = uri.path().len() + query.len();
    if whole > ADDRESS {
        return Err(too_long("the address", whole, ADDRESS));
    }
    for part in uri.path().split('/') {
        let part: Vec<u8> = percent_decode_str(part).collect();
        if part.len() > PART {
            return Err(too_long("a name in the address", part.len(), PART));
        }
        // No name has it, and one of the databases cannot even look for it.
        if part.contains(&0) {
            return Err(bad("the address has a zero byte in it"));
        }
    }
    let pairs = form_urlencoded::parse(query.as_bytes());
    for (nth, (name, value)) in pairs.enumerate() {
        if nth >= PARAMETERS {
            let detail = format!("the address has more than {PARAMETERS} parameters");
            return Err(bad(&detail));
        }
        let most = if FILES.contains(&&*name) { FILE } else { VALUE };
        if value.len() > most {
            // The name is the client's own: it is shown as far as any of ours is long.
            let name: String = name.chars().take(32).collect();
            return Err(too_long(&format!("the parameter `{name}`"), value.len(), most));
        }
        if value.contains('\0') {
            return Err(bad("the address has a zero byte in it"));
        }
    }
    Ok(())
}

/// The value of a header that a client may leave out: one, of visible ASCII letters.
pub fn text_of<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Result<Option<&'h str>, Failure> {
    let mut all = headers.get_all(name).iter();
    let (first, second) = (all.next(), all.next());
    let Some(value) = first else { return Ok(None) };
    if second.is_some() {
        return Err(bad(&format!("the header `{name}` is there twice")));
    }
    let plain = |value: &&str| value.bytes().all(|byte| (b' '..=b'~').contains(&byte));
    let text = value.to_str().ok().filter(plain);
    let odd = || bad(&format!("the header `{name}` has letters that are no visible ASCII"));
    text.map(Some).ok_or_else(odd)
}

/// The key that stands for one request, which is carried out once.
pub fn idempotency_key(headers: &HeaderMap) -> Result<Option<String>, Failure> {
    let key = text_of(headers, &HeaderName::from_static("idempotency-key"))?;
    match key {
        Some(key) if key.trim().is_empty() => Err(bad("the header `idempotency-key` is empty")),
        Some(key) if key.len() > KEY => {
            Err(too_long("the header `idempotency-key`", key.len(), KEY))
        }
        key => Ok(key.map(str::to_owned)),
    }
}

fn too_long(what: &str, is: usize, most: usize) -> Failure {
    let detail = format!("{what} is {is} bytes long, and may have {most}");
    Failure(Fault::new(Code::BadRequest, detail).next("send less of it"))
}

fn bad(detail: &str) -> Failure {
    Failure(Fault::new(Code::BadRequest, detail).next("compare the request with /openapi.json"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    fn detail(failure: Failure) -> String {
        assert_eq!(failure.0.0.known_code(), Some(Code::BadRequest));
        assert!(!failure.0.0.next.is_empty());
        failure.0.0.detail.clone()
    }

    fn address(text: &str) -> Result<(), String> {
        check_address(&text.parse().unwrap()).map_err(detail)
    }

    #[test]
    fn every_part_of_an_address_has_a_length_and_the_refusal_names_it() {
        assert_eq!(address("/v1/jobs?text=bert&limit=5"), Ok(()));
        assert_eq!(address(&format!("/v1/jobs?here=/{}", "x".repeat(4_000))), Ok(()));
        let long = |letters: usize| "x".repeat(letters);
        for (text, says) in [
            (format!("/v1/jobs?text={}", long(2_000)), "the parameter `text` is 2000 bytes"),
            (format!("/v1/jobs?here=/{}", long(5_000)), "the parameter `here`"),
            (format!("/v1/jobs/{}", long(600)), "a name in the address"),
            (format!("/v1/jobs?text={}", long(60_000)), "the address is"),
            (format!("/v1/jobs?{}", "a=1&".repeat(40)), "more than 32 parameters"),
            ("/v1/jobs?text=a%00b".to_owned(), "zero byte"),
            ("/v1/nodes/%00".to_owned(), "zero byte"),
        ] {
            let said = address(&text).unwrap_err();
            assert!(said.contains(says), "{says}: {said}");
        }
    }

    #[test]
    fn a_key_that_cannot_be_read_is_refused_and_never_ignored() {
        let key = |values: &[&[u8]]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append("idempotency-key", HeaderValue::from_bytes(value).unwrap());
            }
            idempotency_key(&headers).map_err(detail)
        };
        assert_eq!(key(&[]), Ok(None));
        assert_eq!(key(&[b"one-key 7"]), Ok(Some("one-key 7".to_owned())));
        for odd in ["schlüssel".as_bytes(), b"a\tb", b"", b" "] {
            assert!(key(&[odd]).is_err(), "{odd:?}");
        }
        assert!(key(&[&[b'x'; 256]]).unwrap_err().contains("256 bytes"));
        assert!(key(&[b"a", b"b"]).unwrap_err().contains("twice"));
    }
}
