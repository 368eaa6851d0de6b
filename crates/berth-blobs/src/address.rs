//! The location of objects, and the keys of a bucket.

use crate::error::{Error, Result};
use std::fmt;
use std::path::Path;
use std::str::FromStr;

/// Such as `s3://bucket/prefix`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    pub bucket: String,
    /// The prefix, without leading or trailing slashes.
    pub prefix: String,
    /// The endpoint, such as `https://minio.example.com`. The default is `AWS_ENDPOINT_URL`, else Amazon's.
    pub endpoint: Option<String>,
}

impl FromStr for Address {
    type Err = Error;

    fn from_str(text: &str) -> Result<Address> {
        let bad = |why: &str| Error::Address { address: text.to_owned(), why: why.to_owned() };
        let rest = text.strip_prefix("s3://").ok_or_else(|| bad("it does not begin with s3://"))?;
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_');
        if bucket.is_empty() || !bucket.chars().all(is_plain) {
            return Err(bad("after s3:// comes the name of a bucket"));
        }
        let prefix = prefix.trim_matches('/');
        if prefix.split('/').any(|part| matches!(part, "." | "..")) || prefix.contains("//") {
            return Err(bad("the prefix has an empty part, `.` or `..`"));
        }
        let (bucket, prefix) = (bucket.to_owned(), prefix.to_owned());
        Ok(Address { bucket, prefix, endpoint: None })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let slash = if self.prefix.is_empty() { "" } else { "/" };
        write!(f, "s3://{}{slash}{}", self.bucket, self.prefix)
    }
}

/// The keys of a bucket. The environment supplies missing ones, as for other S3 clients.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Keys {
    pub id: Option<String>,
    pub secret: Option<String>,
    pub token: Option<String>,
}

/// Debug output must not contain the secret.
impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keys").field("id", &self.id).finish_non_exhaustive()
    }
}

impl Keys {
    /// Reads a file in the format of `~/.aws/credentials`. With several profiles, it reads `default`.
    pub fn read(path: &Path) -> Result<Keys> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| Error::io("read the keys of the bucket in", path, source))?;
        let keys = Keys::parse(&text);
        if keys.id.is_none() || keys.secret.is_none() {
            let why = "it has no lines `aws_access_key_id = …` and `aws_secret_access_key = …`";
            return Err(Error::Keys { path: path.to_owned(), why: why.to_owned() });
        }
        Ok(keys)
    }

    fn parse(text: &str) -> Keys {
        let mut keys = Keys::default();
        let mut is_ours = true;
        for line in text.lines().map(str::trim) {
            if let Some(profile) = line.strip_prefix('[') {
                is_ours = profile.trim_end_matches(']').trim() == "default";
            }
            let Some((name, value)) = line.split_once('=').filter(|_| is_ours) else { continue };
            let value = Some(value.trim().to_owned());
            match name.trim() {
                "aws_access_key_id" => keys.id = value,
                "aws_secret_access_key" => keys.secret = value,
                "aws_session_token" => keys.token = value,
                _ => {}
            }
        }
        keys
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_a_bucket_with_or_without_a_prefix() {
        for (text, bucket, prefix) in [
            ("s3://data", "data", ""),
            ("s3://data/", "data", ""),
            ("s3://team.data/berth/one/", "team.data", "berth/one"),
        ] {
            let address: Address = text.parse().unwrap();
            assert_eq!((&*address.bucket, &*address.prefix), (bucket, prefix), "{text}");
        }
        for text in ["", "data", "s3://", "gs://data", "s3://a b", "s3://a/../b", "s3://a/b//c"] {
            assert!(text.parse::<Address>().is_err(), "{text}");
        }
    }

    #[test]
    fn keys_are_read_from_the_default_profile_and_never_printed() {
        let text = "[other]\naws_access_key_id = no\n[default]\naws_access_key_id = yes\n\
                    aws_secret_access_key=hush\n[more]\naws_secret_access_key = no\n";
        let keys = Keys::parse(text);
        assert_eq!((keys.id.as_deref(), keys.secret.as_deref()), (Some("yes"), Some("hush")));
        assert!(!format!("{keys:?}").contains("hush"));
    }
}
