//! What a container has printed, line by line with its time.

use super::api::{Api, percent_encode};
use super::binding::pod_path;
use super::error::{Error, Result, Status};
use berth_model::PodRef;
use futures_util::StreamExt;
use http::{Request, header};
use http_body_util::BodyStream;
use jiff::Timestamp;
use kube::client::Body;

/// A line that is longer comes in pieces.
const LONGEST_LINE: usize = 1 << 20;

/// A log as it comes in.
pub struct LogStream {
    path: String,
    body: BodyStream<Body>,
    buffer: Vec<u8>,
    /// In the midst of a long line, which has no time of its own.
    goes_on: bool,
}

impl std::fmt::Debug for LogStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LogStream").field("path", &self.path).finish_non_exhaustive()
    }
}

/// A line with its end, or a piece of a long one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogLine {
    /// When it was printed; nothing for the later pieces of a long line.
    pub at: Option<Timestamp>,
    pub text: Vec<u8>,
}

impl Api {
    /// The log of a container, from a moment on where one is named. It ends where the log ends now,
    /// or with the container for whoever follows it.
    pub async fn log(
        &self,
        pod: &PodRef,
        container: &str,
        since: Option<Timestamp>,
        follow: bool,
    ) -> Result<LogStream> {
        let mut path = format!("{}/log?container={container}&timestamps=true", pod_path(pod));
        if let Some(since) = since {
            path.push_str(&format!("&sinceTime={}", percent_encode(&since.to_string())));
        }
        if follow {
            path.push_str("&follow=true");
        }
        let request = Request::get(&path).header(header::ACCEPT, "*/*");
        let answer = self.send_as(&path, request, Vec::new()).await?;
        let code = answer.status();
        if !code.is_success() {
            let body = answer.into_body().collect_bytes().await.unwrap_or_default();
            let error = Status::read(code.as_u16(), &body).error(&path);
            self.metrics().failed(&error);
            return Err(error);
        }
        let body = BodyStream::new(answer.into_body());
        Ok(LogStream { path, body, buffer: Vec::new(), goes_on: false })
    }
}

impl LogStream {
    /// The next lines; nothing at the end.
    pub async fn next(&mut self) -> Result<Option<Vec<LogLine>>> {
        loop {
            let Some(frame) = self.body.next().await else { return Ok(self.rest()) };
            let frame = frame.map_err(|why| Error::Unreachable {
                what: self.path.clone(),
                why: why.to_string(),
            })?;
            let Ok(data) = frame.into_data() else { continue };
            self.buffer.extend_from_slice(&data);
            let lines = self.lines();
            if !lines.is_empty() {
                return Ok(Some(lines));
            }
        }
    }

    /// Lines that have come whole, and pieces of one that is too long to wait for its end.
    fn lines(&mut self) -> Vec<LogLine> {
        let mut lines = Vec::new();
        while let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.buffer.drain(..=end).collect();
            lines.push(self.line(line));
            self.goes_on = false;
        }
        if self.buffer.len() > LONGEST_LINE {
            let piece = std::mem::take(&mut self.buffer);
            lines.push(self.line(piece));
            self.goes_on = true;
        }
        lines
    }

    /// A last line without its end.
    fn rest(&mut self) -> Option<Vec<LogLine>> {
        if self.buffer.is_empty() {
            return None;
        }
        let rest = std::mem::take(&mut self.buffer);
        Some(vec![self.line(rest)])
    }

    fn line(&self, bytes: Vec<u8>) -> LogLine {
        let stamp = || {
            let end = bytes.iter().position(|byte| *byte == b' ')?;
            let at: Timestamp = std::str::from_utf8(&bytes[..end]).ok()?.parse().ok()?;
            Some((at, bytes[end + 1..].to_vec()))
        };
        match if self.goes_on { None } else { stamp() } {
            Some((at, text)) => LogLine { at: Some(at), text },
            None => LogLine { at: None, text: bytes },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream() -> LogStream {
        let body = BodyStream::new(Body::from(Vec::new()));
        LogStream { path: String::new(), body, buffer: Vec::new(), goes_on: false }
    }

    #[test]
    fn lines_come_with_their_times_and_unfinished_ones_wait() {
        let mut log = stream();
        log.buffer.extend_from_slice(b"2026-11-16T02:00:00.5Z step 1\n2026-11-16T02:00:01Z");
        let lines = log.lines();
        assert_eq!(lines.len(), 1);
        assert_eq!(lines[0].at, Some("2026-11-16T02:00:00.5Z".parse().unwrap()));
        assert_eq!(lines[0].text, b"step 1\n");
        log.buffer.extend_from_slice(b" done");
        assert_eq!(log.rest().unwrap()[0].text, b"done");
        assert_eq!(log.rest(), None);
    }

    #[test]
    fn a_line_without_end_comes_in_pieces_and_what_has_no_time_is_kept() {
        let mut log = stream();
        log.buffer.extend_from_slice(b"2026-11-16T02:00:00Z ");
        log.buffer.extend(std::iter::repeat_n(b'x', LONGEST_LINE));
        assert_eq!(log.lines()[0].text.len(), LONGEST_LINE);
        log.buffer.extend_from_slice(b"2026-11-16T02:00:09Z is text\nplain\n");
        let lines = log.lines();
        assert_eq!(lines[0].text, b"2026-11-16T02:00:09Z is text\n");
        assert_eq!((lines[1].at, lines[1].text.as_slice()), (None, &b"plain\n"[..]));
    }
}
