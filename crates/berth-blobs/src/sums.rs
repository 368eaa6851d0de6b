//! Computes SHA-256, which names an object, and MD5, which DVC uses.

use crate::id::BlobId;
use md5::{Digest, Md5};
use ring::digest::{Context, SHA256};

#[derive(Clone)]
pub struct Sums {
    sha256: Context,
    md5: Md5,
}

impl Default for Sums {
    fn default() -> Sums {
        Sums { sha256: Context::new(&SHA256), md5: Md5::new() }
    }
}

impl Sums {
    pub fn update(&mut self, bytes: &[u8]) {
        self.sha256.update(bytes);
        self.md5.update(bytes);
    }

    /// The SHA-256 name of the object, and its MD5 sum.
    pub fn finish(self) -> (BlobId, String) {
        (BlobId::of_digest(self.sha256.finish().as_ref()), hex::encode(self.md5.finalize()))
    }

    pub fn of(bytes: &[u8]) -> (BlobId, String) {
        let mut sums = Sums::default();
        sums.update(bytes);
        sums.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sums_are_those_that_other_programs_compute() {
        let (id, md5) = Sums::of(b"foo\n");
        let sha256 = "b5bb9d8014a0f9b1d61e21e796d78dccdf1352f23cd32812f4850b878ae4944c";
        assert_eq!((id.as_str(), &*md5), (sha256, "d3b07384d113edec49eaa6238ad5ff00"));
    }
}
