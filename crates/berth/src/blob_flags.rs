//! Where artifacts, data and code are kept, and how much of them.

use crate::fail::{Failure, Result};
use crate::kept::entry;
use berth_api::wire::ConfigEntry;
use berth_model::{Bytes, Span};
use berth_server::{BlobAddress, BlobKeys, BlobLimits, BlobOptions};
use clap::Args;
use std::path::PathBuf;

const RESERVE: &str = "1GiB";
const LARGEST: &str = "500GiB";
const QUOTA: &str = "1TiB";
const GRACE: &str = "24h";
/// Parts of an upload have a size, and a store takes so many of them.
const MOST: i64 = 1_000_000_000_000;

/// Where artifacts, data and code are kept.
#[derive(Args, Debug)]
pub struct BlobFlags {
    /// Keep artifacts, data and code in a bucket of an S3-compatible store, such as s3://bucket/prefix,
    /// instead of the home. The region and the keys come from AWS_REGION, AWS_ACCESS_KEY_ID and
    /// AWS_SECRET_ACCESS_KEY
    #[arg(long, value_name = "ADDRESS", env = "BERTH_BLOBS")]
    pub blobs: Option<BlobAddress>,
    /// Where the store of the bucket answers, such as https://minio.example.com
    /// (AWS_ENDPOINT_URL, or Amazon's)
    #[arg(long, value_name = "URL", env = "BERTH_BLOBS_ENDPOINT", requires = "blobs")]
    pub blobs_endpoint: Option<String>,
    /// The keys of the bucket, in a file as other programs have it:
    /// `aws_access_key_id = …` and `aws_secret_access_key = …`
    #[arg(long, value_name = "FILE", env = "BERTH_BLOBS_KEYS", requires = "blobs")]
    pub blobs_keys: Option<PathBuf>,
    /// How much of the server's disk artifacts, data and code leave free, such as 1GiB
    #[arg(long, value_name = "SIZE", default_value = RESERVE, env = "BERTH_BLOBS_RESERVE")]
    pub blobs_reserve: String,
    /// The largest artifact or file of data, such as 500GiB
    #[arg(long, value_name = "SIZE", default_value = LARGEST, env = "BERTH_BLOBS_LARGEST")]
    pub blobs_largest: String,
    /// How much artifacts, data and code each team may keep, such as 1TiB; `berth storage quota` sets another
    /// amount for one team
    #[arg(long, value_name = "SIZE", default_value = QUOTA, env = "BERTH_TEAM_QUOTA")]
    pub team_quota: String,
    /// How long to keep the bytes of artifacts, data and code after the last name for them is deleted, such
    /// as 24h
    #[arg(long, value_name = "TIME", default_value = GRACE, env = "BERTH_KEEP_UNNAMED")]
    pub keep_unnamed: String,
}

impl BlobFlags {
    pub fn options(&self) -> Result<BlobOptions> {
        let keys = self.blobs_keys.as_deref().map(BlobKeys::read).transpose();
        let keys = keys.map_err(|error| Failure::usage(format!("--blobs-keys: {error}")))?;
        let grace = self.keep_unnamed.parse::<Span>().ok().filter(|grace| grace.0 >= 0);
        let grace = grace.ok_or_else(|| {
            let found = &self.keep_unnamed;
            Failure::usage(format!("--keep-unnamed: found `{found}`, expected a time such as 24h"))
        })?;
        let most = size("--blobs-largest", &self.blobs_largest)?;
        if most > MOST.unsigned_abs() {
            return Err(Failure::usage("--blobs-largest: expected at most 931GiB"));
        }
        Ok(BlobOptions {
            bucket: self.blobs.clone().map(|address| {
                let endpoint = self.blobs_endpoint.clone();
                (BlobAddress { endpoint, ..address }, keys.unwrap_or_default())
            }),
            reserve: size("--blobs-reserve", &self.blobs_reserve)?,
            most,
            limits: BlobLimits { quota: size("--team-quota", &self.team_quota)?, grace },
        })
    }

    pub fn config(&self) -> Vec<ConfigEntry> {
        let place =
            self.blobs.as_ref().map_or_else(|| "in the home".to_owned(), ToString::to_string);
        let settings = [
            ("blobs-reserve", &self.blobs_reserve, RESERVE),
            ("blobs-largest", &self.blobs_largest, LARGEST),
            ("team-quota", &self.team_quota, QUOTA),
            ("keep-unnamed", &self.keep_unnamed, GRACE),
        ];
        let each = settings.into_iter();
        let rest = each.map(|(key, value, usual)| entry(key, value.clone(), value == usual));
        [entry("blobs", place, self.blobs.is_none())].into_iter().chain(rest).collect()
    }
}

/// A size that may be nothing.
pub fn size(flag: &str, text: &str) -> Result<u64> {
    let size = text.parse::<Bytes>().ok().and_then(|size| u64::try_from(size.0).ok());
    let wrong = || Failure::usage(format!("{flag}: found `{text}`, expected a size such as 50GiB"));
    size.ok_or_else(wrong)
}
