//! The digest of what is written.

use berth_model::CodeId;
use ring::digest::{Context, SHA256, digest};
use std::io::{self, Write};

/// The digits of the SHA-256 of some bytes.
pub fn digest_of(bytes: &[u8]) -> String {
    hex::encode(digest(&SHA256, bytes))
}

/// Writes on, and computes the digest of what it wrote.
pub struct Hasher<W> {
    to: W,
    context: Context,
    bytes: u64,
}

impl<W: Write> Hasher<W> {
    pub fn new(to: W) -> Hasher<W> {
        Hasher { to, context: Context::new(&SHA256), bytes: 0 }
    }

    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    pub fn finish(self) -> (W, CodeId, u64) {
        let digits = hex::encode(self.context.finish());
        let id = format!("sha256:{digits}").parse().expect("a digest of SHA-256");
        (self.to, id, self.bytes)
    }
}

impl<W: Write> Write for Hasher<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.to.write(bytes)?;
        self.context.update(&bytes[..written]);
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}
