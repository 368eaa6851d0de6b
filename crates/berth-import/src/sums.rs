//! Checksums. Two places return entities in different orders, so the sum of a set adds the sums of its
//! members, lane by lane. This needs no memory for the members.

use ring::digest::{Context, SHA256};

/// The sum of a set, independent of the order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SetSum {
    lanes: [u64; 4],
    pub count: u64,
}

impl SetSum {
    pub fn add(&mut self, member: &[u8; 32]) {
        for (lane, bytes) in self.lanes.iter_mut().zip(member.chunks_exact(8)) {
            let part = bytes.try_into().map(u64::from_be_bytes).unwrap_or_default();
            *lane = lane.wrapping_add(part);
        }
        self.count += 1;
    }

    /// Adds a member, given by its parts.
    pub fn put(&mut self, parts: &[&[u8]]) {
        self.add(&sum_of(parts));
    }

    pub fn sum(&self) -> [u8; 32] {
        let mut bytes = Vec::with_capacity(40);
        for lane in self.lanes.iter().chain([&self.count]) {
            bytes.extend_from_slice(&lane.to_be_bytes());
        }
        sum_of(&[&bytes])
    }
}

/// The SHA-256 sum of parts. It includes their lengths, so that other splits have other sums.
pub fn sum_of(parts: &[&[u8]]) -> [u8; 32] {
    let mut context = Context::new(&SHA256);
    for part in parts {
        context.update(&(part.len() as u64).to_be_bytes());
        context.update(part);
    }
    bytes_of(context)
}

fn bytes_of(context: Context) -> [u8; 32] {
    let digest = context.finish();
    digest.as_ref().try_into().expect("SHA-256 has 32 bytes")
}

/// The plain SHA-256 sum of a file.
pub struct FileSum(Context);

impl Default for FileSum {
    fn default() -> FileSum {
        FileSum(Context::new(&SHA256))
    }
}

impl FileSum {
    pub fn update(&mut self, piece: &[u8]) {
        self.0.update(piece);
    }

    pub fn finish(self) -> String {
        hex::encode(bytes_of(self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_of_a_set_depends_on_its_members_and_not_on_their_order() {
        let of = |members: &[&str]| {
            let mut sum = SetSum::default();
            members.iter().for_each(|member| sum.put(&[member.as_bytes()]));
            sum.sum()
        };
        assert_eq!(of(&["a", "b", "c"]), of(&["c", "a", "b"]));
        assert_ne!(of(&["a", "b"]), of(&["a", "b", "b"]));
        assert_ne!(of(&["a", "b"]), of(&["a", "c"]));
        assert_ne!(sum_of(&[b"ab", b"c"]), sum_of(&[b"a", b"bc"]));
    }

    #[test]
    fn the_sum_of_a_file_is_its_sha_256_sum() {
        let mut sum = FileSum::default();
        sum.update(b"a");
        sum.update(b"bc");
        let expect = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(sum.finish(), expect);
    }
}
