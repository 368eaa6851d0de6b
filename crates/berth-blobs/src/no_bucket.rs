//! No bucket: this program was built without them.

use crate::address::{Address, Keys};
use crate::error::{Error, Result};
use crate::id::BlobId;
use crate::listed::Listed;
use crate::read::Content;
use std::convert::Infallible;
use std::ops::Range;
use std::path::Path;

/// There is none.
#[derive(Debug, Clone)]
pub struct Bucket(Infallible);

impl Bucket {
    pub fn open(address: &Address, _: &Keys) -> Result<Bucket> {
        let why = "this program was built without buckets".to_owned();
        Err(Error::Address { address: address.to_string(), why })
    }

    pub fn shown(&self) -> &str {
        match self.0 {}
    }

    pub async fn check(&self) -> Result<()> {
        match self.0 {}
    }

    pub async fn place(&self, _: &BlobId, _: u64, _: &Path) -> Result<bool> {
        match self.0 {}
    }

    pub async fn read(&self, _: &BlobId, _: Range<u64>) -> Result<Content> {
        match self.0 {}
    }

    pub async fn remove(&self, _: &BlobId) -> Result<()> {
        match self.0 {}
    }

    pub async fn list(&self, _: &str) -> Result<Vec<Listed>> {
        match self.0 {}
    }
}
