//! The part of a log that was asked for: lines with a text in them, and no more than so many.
//!
//! A log is read in chunks that end anywhere. A line counts as a whole, so the beginning of one is
//! kept until the rest has come.

use berth_node::LONGEST_LOG_LINE;

pub struct Cut {
    search: Option<String>,
    lines: Option<u32>,
    /// The beginning of a line, and where it is.
    carry: Vec<u8>,
    carry_at: u64,
}

/// Bytes, and where they are in the log.
type Piece = (u64, Vec<u8>);

impl Cut {
    pub fn new(search: Option<String>, lines: Option<u32>) -> Cut {
        Cut { search, lines, carry: Vec::new(), carry_at: 0 }
    }

    /// Nothing more is wanted.
    pub fn is_over(&self) -> bool {
        self.lines == Some(0)
    }

    /// What is wanted of the next chunk. Bytes of a piece were next to each other in the log.
    pub fn take(&mut self, position: u64, bytes: &[u8]) -> Vec<Piece> {
        if self.search.is_none() && self.lines.is_none() {
            return vec![(position, bytes.to_vec())];
        }
        if self.search.is_none() {
            let kept = self.counted(bytes);
            return vec![(position, bytes[..kept].to_vec())];
        }
        let mut pieces = Vec::new();
        if self.carry_at + self.carry.len() as u64 != position {
            // What lay between was dropped: the line has no end.
            pieces.extend(self.rest());
            self.carry_at = position;
        }
        self.carry.extend_from_slice(bytes);
        let mut done = 0;
        while let Some(length) = line_of(&self.carry[done..]) {
            let at = self.carry_at + done as u64;
            let line = self.carry[done..done + length].to_vec();
            self.add(&mut pieces, at, line);
            done += length;
        }
        self.carry.drain(..done);
        self.carry_at += done as u64;
        pieces
    }

    /// A last line without an end.
    pub fn rest(&mut self) -> Vec<Piece> {
        let mut pieces = Vec::new();
        let line = std::mem::take(&mut self.carry);
        let at = self.carry_at;
        self.carry_at += line.len() as u64;
        if !line.is_empty() {
            self.add(&mut pieces, at, line);
        }
        pieces
    }

    fn add(&mut self, pieces: &mut Vec<Piece>, at: u64, line: Vec<u8>) {
        let wanted = self.search.as_deref().unwrap_or_default();
        if self.is_over() || !String::from_utf8_lossy(&line).contains(wanted) {
            return;
        }
        if let Some(lines) = &mut self.lines {
            *lines -= 1;
        }
        match pieces.last_mut() {
            Some((begin, bytes)) if *begin + bytes.len() as u64 == at => bytes.extend(line),
            _ => pieces.push((at, line)),
        }
    }

    /// How many bytes belong to lines that are wanted.
    fn counted(&mut self, bytes: &[u8]) -> usize {
        let Some(lines) = self.lines.as_mut() else { return bytes.len() };
        if *lines == 0 {
            return 0;
        }
        for (at, _) in bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n') {
            *lines = lines.saturating_sub(1);
            if *lines == 0 {
                return at + 1;
            }
        }
        bytes.len()
    }
}

/// The length of the first line with its end, or of a piece of one that is too long.
fn line_of(bytes: &[u8]) -> Option<usize> {
    let most = bytes.len().min(LONGEST_LOG_LINE);
    match bytes[..most].iter().position(|byte| *byte == b'\n') {
        Some(at) => Some(at + 1),
        None => (bytes.len() >= LONGEST_LOG_LINE).then_some(LONGEST_LOG_LINE),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The log in chunks of so many bytes, as far as it is wanted.
    fn cut(
        log: &str,
        chunk: usize,
        search: Option<&str>,
        lines: Option<u32>,
    ) -> Vec<(u64, String)> {
        let mut cut = Cut::new(search.map(str::to_owned), lines);
        let mut pieces = Vec::new();
        for (nth, bytes) in log.as_bytes().chunks(chunk).enumerate() {
            if !cut.is_over() {
                pieces.extend(cut.take((nth * chunk) as u64, bytes));
            }
        }
        pieces.extend(cut.rest());
        let text = |(at, bytes): Piece| (at, String::from_utf8(bytes).unwrap());
        pieces.into_iter().map(text).filter(|(_, text)| !text.is_empty()).collect()
    }

    #[test]
    fn a_line_is_found_wherever_a_chunk_ends() {
        let log = "one loss\ntwo\nthree loss\nfour loss\nfive";
        for chunk in 1..=log.len() {
            let found = cut(log, chunk, Some("loss"), None);
            let text: String = found.iter().map(|(_, text)| text.as_str()).collect();
            assert_eq!(text, "one loss\nthree loss\nfour loss\n", "chunks of {chunk}");
            for (at, text) in &found {
                assert!(log[*at as usize..].starts_with(text.as_str()), "chunks of {chunk}");
            }
            let last = cut(log, chunk, Some("five"), None);
            assert_eq!(last, [(34, "five".to_owned())], "a last line without an end");
        }
    }

    #[test]
    fn so_many_lines_are_told_and_no_more() {
        let log = "a\nb\nc\nd\n";
        for chunk in 1..=log.len() {
            let all: String =
                cut(log, chunk, None, Some(2)).into_iter().map(|(_, text)| text).collect();
            assert_eq!(all, "a\nb\n");
            let found = cut("ax\nb\ncx\ndx\n", chunk, Some("x"), Some(2));
            let all: String = found.into_iter().map(|(_, text)| text).collect();
            assert_eq!(all, "ax\ncx\n");
        }
        let mut cut = Cut::new(None, Some(1));
        assert_eq!(cut.take(0, b"a\nb\n"), [(0, b"a\n".to_vec())]);
        assert_eq!(cut.take(4, b"c\nd\n"), [(4, Vec::new())], "also of what was read beyond");
    }

    #[test]
    fn a_line_without_an_end_in_sight_is_cut() {
        let mut cut = Cut::new(Some("x".to_owned()), None);
        let long = vec![b'x'; LONGEST_LOG_LINE + 10];
        let pieces = cut.take(0, &long);
        assert_eq!(pieces.iter().map(|(_, bytes)| bytes.len()).sum::<usize>(), LONGEST_LOG_LINE);
        assert_eq!(cut.rest(), [(LONGEST_LOG_LINE as u64, vec![b'x'; 10])]);
    }
}
