//! HTTP/1.1 over one connection that is kept, the same for every server. It does no more than the
//! measured requests need, so that it takes little of the CPU that it shares with the server.

use anyhow::{Context, Result, bail, ensure};
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// MLflow takes seconds for some answers.
const TIMEOUT: Duration = Duration::from_secs(120);

pub struct Answer {
    pub status: u16,
    pub body: Vec<u8>,
}

/// One connection. It is opened anew where the server has closed it between two requests.
pub struct Wire {
    address: SocketAddr,
    /// The same lines in each request.
    headers: String,
    stream: Option<BufReader<TcpStream>>,
    request: Vec<u8>,
}

impl Wire {
    pub fn new(address: SocketAddr, token: Option<&str>) -> Wire {
        let mut headers = format!("Host: {address}\r\n");
        if let Some(token) = token {
            headers.push_str(&format!("Authorization: Bearer {token}\r\n"));
        }
        Wire { address, headers, stream: None, request: Vec::new() }
    }

    pub fn get(&mut self, path: &str) -> Result<Answer> {
        self.ask("GET", path, None)
    }

    pub fn post(&mut self, path: &str, body: &str) -> Result<Answer> {
        self.ask("POST", path, Some(body))
    }

    fn ask(&mut self, method: &str, path: &str, body: Option<&str>) -> Result<Answer> {
        let headers = &self.headers;
        self.request.clear();
        write!(self.request, "{method} {path} HTTP/1.1\r\n{headers}")?;
        if let Some(body) = body {
            let length = body.len();
            write!(
                self.request,
                "Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
            )?;
        } else {
            self.request.extend_from_slice(b"\r\n");
        }
        let kept = self.stream.is_some();
        match self.exchange() {
            // The server may have closed a connection that was idle.
            Ok(None) if kept => {
                self.stream = None;
                let answer = self.exchange()?;
                answer.with_context(|| format!("{path}: the server closed the connection"))
            }
            Ok(answer) => {
                answer.with_context(|| format!("{path}: the server closed the connection"))
            }
            Err(error) => {
                self.stream = None;
                Err(error.context(format!("{method} {path}")))
            }
        }
    }

    /// Sends the request and reads the answer. None where the connection was closed before.
    fn exchange(&mut self) -> Result<Option<Answer>> {
        let mut stream = match self.stream.take() {
            Some(stream) => stream,
            None => {
                let stream = TcpStream::connect(self.address).context("connecting")?;
                stream.set_nodelay(true)?;
                stream.set_read_timeout(Some(TIMEOUT))?;
                BufReader::with_capacity(1 << 16, stream)
            }
        };
        let sent = stream.get_mut().write_all(&self.request);
        if sent.as_ref().is_err_and(is_closed) {
            return Ok(None);
        }
        sent.context("sending")?;
        let mut line = String::new();
        let read = stream.read_line(&mut line);
        if matches!(read, Ok(0)) || read.as_ref().is_err_and(is_closed) {
            return Ok(None);
        }
        read.context("reading the status")?;
        let status = line.split(' ').nth(1).and_then(|word| word.parse().ok());
        let status = status.with_context(|| format!("no status: {line:?}"))?;
        let (body, closes) = read_body(&mut stream)?;
        if !closes {
            self.stream = Some(stream);
        }
        Ok(Some(Answer { status, body }))
    }
}

fn is_closed(error: &std::io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::ConnectionReset | ErrorKind::BrokenPipe | ErrorKind::ConnectionAborted
    )
}

/// The body, and whether the server closes the connection after it.
fn read_body(stream: &mut impl BufRead) -> Result<(Vec<u8>, bool)> {
    let (mut length, mut chunked, mut closes) = (None, false, false);
    let mut line = String::new();
    loop {
        line.clear();
        ensure!(stream.read_line(&mut line).context("reading a header")? > 0, "half an answer");
        let header = line.trim_end();
        if header.is_empty() {
            break;
        }
        let Some((name, value)) = header.split_once(':') else { bail!("no header: {header:?}") };
        let value = value.trim();
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = Some(value.parse::<usize>().context("a length")?),
            "transfer-encoding" => chunked = value.eq_ignore_ascii_case("chunked"),
            "connection" => closes = value.eq_ignore_ascii_case("close"),
            _ => {}
        }
    }
    let mut body = Vec::new();
    if chunked {
        loop {
            line.clear();
            stream.read_line(&mut line).context("reading the length of a chunk")?;
            let digits = line.trim_end().split(';').next().unwrap_or_default();
            let size = usize::from_str_radix(digits, 16).context("the length of a chunk")?;
            let start = body.len();
            body.resize(start + size, 0);
            stream.read_exact(&mut body[start..]).context("reading a chunk")?;
            line.clear();
            stream.read_line(&mut line).context("reading the end of a chunk")?;
            if size == 0 {
                break;
            }
        }
    } else {
        body.resize(length.context("neither a length nor chunks")?, 0);
        stream.read_exact(&mut body).context("reading a body")?;
    }
    Ok((body, closes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(text: &str) -> (String, bool) {
        let (body, closes) = read_body(&mut text.as_bytes()).unwrap();
        (String::from_utf8(body).unwrap(), closes)
    }

    #[test]
    fn a_body_is_read_by_its_length_and_in_chunks() {
        assert_eq!(body("Content-Length: 2\r\n\r\nabc"), ("ab".to_owned(), false));
        let chunks = "transfer-encoding: chunked\r\nconnection: close\r\n\r\n\
                      3;x=y\r\nabc\r\n1\r\nd\r\n0\r\n\r\n";
        assert_eq!(body(chunks), ("abcd".to_owned(), true));
    }

    #[test]
    fn half_an_answer_is_an_error() {
        assert!(read_body(&mut "Content-Length: 5\r\n\r\nab".as_bytes()).is_err());
        assert!(read_body(&mut "Content-Length: 5\r\n".as_bytes()).is_err());
    }
}
