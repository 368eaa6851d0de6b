//! Snapshots of the folder that a user works in: packed where a job is submitted, kept by the server
//! under their digest, and unpacked where the job starts. The same files make the same archive, so a
//! folder that did not change is sent once.

#![forbid(unsafe_code)]

mod digest;
mod header;
mod origin;
mod pack;
mod unpack;

pub use digest::{Hasher, digest_of};
pub use origin::{Origin, cut_diff};
pub use pack::{Limits, PackError, Packed, pack, pack_with_origin};
pub use unpack::{UnpackError, unpack};

/// What an archive may take, packed. A larger folder holds data, which belongs in a volume.
pub const MOST_PACKED: u64 = 100_000_000;
/// What all files of an archive may take, and how many there may be.
pub const MOST_BYTES: u64 = 4 << 30;
pub const MOST_FILES: u64 = 100_000;
