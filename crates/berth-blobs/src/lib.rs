//! A content-addressed object store: the name of an object is its SHA-256 sum. Objects are in a folder or
//! in a bucket of an S3-compatible store.
//!
//! Deliberately absent: teams, rights and the names that users give to objects. `berth-service` keeps
//! those in the database.

mod address;
mod bucket;
mod error;
mod folder;
mod id;
mod listed;
mod read;
mod reader;
mod room;
mod store;
mod sums;
mod upload;

pub use address::{Address, Keys};
pub use error::{Error, Result};
pub use id::{BlobId, ParseBlobId, is_md5};
pub use listed::Listed;
pub use read::{Content, PIECE, of_file};
pub use reader::Reader;
pub use room::Room;
pub use store::{Blobs, Options};
pub use sums::Sums;
pub use upload::{Placed, Upload, Whole};
