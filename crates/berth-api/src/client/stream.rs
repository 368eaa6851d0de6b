//! Answers that go on: lines, one JSON value on each, and server-sent events.

use super::error::{Error, Result};
use reqwest::Response;
use serde::de::DeserializeOwned;

/// A line longer than this is no line of ours, and no event is longer either.
const LONGEST_LINE: usize = 8 << 20;

/// The bytes of an answer, as they come.
#[derive(Debug)]
pub struct Pieces {
    response: Response,
    url: String,
    what: &'static str,
}

impl Pieces {
    pub(super) fn new(response: Response, url: String, what: &'static str) -> Pieces {
        Pieces { response, url, what }
    }

    /// How many there will be, where the server says.
    pub fn length(&self) -> Option<u64> {
        self.response.content_length()
    }

    /// Nothing when the answer is over.
    pub async fn next(&mut self) -> Result<Option<Vec<u8>>> {
        let piece = self.response.chunk().await;
        let lost = |source| Error::Lost { url: self.url.clone(), what: self.what, source };
        Ok(piece.map_err(lost)?.map(|bytes| bytes.to_vec()))
    }
}

/// The lines of an answer, as they come.
#[derive(Debug)]
pub struct Lines {
    response: Response,
    url: String,
    what: &'static str,
    buffer: Vec<u8>,
    /// How much of the buffer has been looked at: no byte is looked at twice.
    seen: usize,
    over: bool,
}

impl Lines {
    pub(super) fn new(response: Response, url: String, what: &'static str) -> Lines {
        Lines { response, url, what, buffer: Vec::new(), seen: 0, over: false }
    }

    /// The next line without its end; nothing when the answer is over.
    pub async fn next_line(&mut self) -> Result<Option<String>> {
        loop {
            if let Some(at) = self.buffer[self.seen..].iter().position(|byte| *byte == b'\n') {
                let rest = self.buffer.split_off(self.seen + at + 1);
                let line = std::mem::replace(&mut self.buffer, rest);
                self.seen = 0;
                return Ok(Some(text(&line)));
            }
            self.seen = self.buffer.len();
            if self.over {
                let last = std::mem::take(&mut self.buffer);
                self.seen = 0;
                return Ok((!last.is_empty()).then(|| text(&last)));
            }
            if self.buffer.len() > LONGEST_LINE {
                return Err(Error::LongLine { what: self.what, limit: LONGEST_LINE });
            }
            match self.response.chunk().await {
                Ok(Some(bytes)) => self.buffer.extend_from_slice(&bytes),
                Ok(None) => self.over = true,
                Err(source) => {
                    return Err(Error::Lost { url: self.url.clone(), what: self.what, source });
                }
            }
        }
    }

    /// The next value of an answer with one in JSON on each line. Empty lines keep a connection
    /// alive and say nothing.
    pub async fn next_json<T: DeserializeOwned>(&mut self) -> Result<Option<T>> {
        while let Some(line) = self.next_line().await? {
            if !line.is_empty() {
                return self.json(&line).map(Some);
            }
        }
        Ok(None)
    }

    /// The next value of a stream of server-sent events.
    pub async fn next_event<T: DeserializeOwned>(&mut self) -> Result<Option<T>> {
        let mut data: Option<String> = None;
        while let Some(line) = self.next_line().await? {
            if let Some(rest) = line.strip_prefix("data:") {
                let rest = rest.strip_prefix(' ').unwrap_or(rest);
                match &mut data {
                    Some(text) => {
                        text.push('\n');
                        text.push_str(rest);
                    }
                    None => data = Some(rest.to_owned()),
                }
                if data.as_ref().is_some_and(|text| text.len() > LONGEST_LINE) {
                    return Err(Error::LongLine { what: self.what, limit: LONGEST_LINE });
                }
            } else if line.is_empty()
                && let Some(text) = data.take()
            {
                return self.json(&text).map(Some);
            }
        }
        // An event without its empty line was cut off.
        Ok(None)
    }

    fn json<T: DeserializeOwned>(&self, text: &str) -> Result<T> {
        serde_json::from_str(text).map_err(|source| Error::Decode { what: self.what, source })
    }
}

fn text(line: &[u8]) -> String {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    String::from_utf8_lossy(line).into_owned()
}
