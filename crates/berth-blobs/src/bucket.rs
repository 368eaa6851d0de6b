//! Objects in a bucket of an S3-compatible store.

use crate::address::{Address, Keys};
use crate::error::{Error, Result, on_disk};
use crate::id::BlobId;
use crate::listed::Listed;
use bytes::Bytes;
use futures_util::stream::BoxStream;
use futures_util::{StreamExt, TryStreamExt};
use object_store::aws::{AmazonS3, AmazonS3Builder};
use object_store::path::Path as Key;
use object_store::{
    ClientOptions, GetOptions, GetRange, ObjectStore, ObjectStoreExt, WriteMultipart,
};
use std::fs::File;
use std::io::Read;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// The size of one part. S3 requires at least 5 MiB.
const PART: usize = 8 << 20;
/// S3 allows ten thousand parts for one object.
const MOST_PARTS: u64 = 9_000;
/// Parts in flight at once.
const AT_ONCE: usize = 3;
/// The folder of objects that have a name instead of a sum. Sums have two digits there.
const NAMED: &str = "named";
/// The read timeout.
const SILENCE: Duration = Duration::from_secs(60);

#[derive(Debug, Clone)]
pub struct Bucket {
    client: Arc<AmazonS3>,
    shown: String,
    prefix: String,
}

impl Bucket {
    /// The environment supplies missing settings (`AWS_REGION`, `AWS_ENDPOINT_URL`, `AWS_ACCESS_KEY_ID`, …).
    pub fn open(address: &Address, keys: &Keys) -> Result<Bucket> {
        // A large object may take hours, so there is no timeout for the whole request.
        let client = ClientOptions::new().with_timeout_disabled().with_read_timeout(SILENCE);
        let mut builder = AmazonS3Builder::from_env()
            .with_client_options(client)
            .with_bucket_name(&address.bucket);
        let names = ["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"];
        let named = || names.into_iter().find_map(|name| std::env::var(name).ok());
        if let Some(endpoint) = address.endpoint.clone().or_else(named) {
            // The operator may choose http:// for a store on the same machine or network.
            builder = builder.with_allow_http(endpoint.starts_with("http://"));
            builder = builder.with_endpoint(endpoint);
        }
        let Keys { id, secret, token } = keys.clone();
        if let (Some(id), Some(secret)) = (id, secret) {
            builder = builder.with_access_key_id(id).with_secret_access_key(secret);
        }
        if let Some(token) = token {
            builder = builder.with_token(token);
        }
        let bad = |error: object_store::Error| Error::Address {
            address: address.to_string(),
            why: error.to_string(),
        };
        let client = Arc::new(builder.build().map_err(bad)?);
        Ok(Bucket { client, shown: address.to_string(), prefix: address.prefix.clone() })
    }

    pub fn shown(&self) -> &str {
        &self.shown
    }

    fn key(&self, id: &BlobId) -> Key {
        let (first, rest) = id.parts();
        Key::from(format!("{}/{first}/{rest}", self.prefix))
    }

    fn failed(&self, action: &'static str) -> impl FnOnce(object_store::Error) -> Error + use<> {
        let bucket = self.shown.clone();
        move |source| Error::Bucket { action, bucket, source: Box::new(source) }
    }

    /// Sends a small request, so that a wrong key or endpoint fails at the start.
    pub async fn check(&self) -> Result<()> {
        let prefix = Key::from(self.prefix.as_str());
        let mut listed = self.client.list(Some(&prefix));
        listed.try_next().await.map(drop).map_err(self.failed("look"))
    }

    pub async fn size(&self, id: &BlobId) -> Result<Option<u64>> {
        match self.client.head(&self.key(id)).await {
            Ok(found) => Ok(Some(found.size)),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(self.failed("look for an object")(error)),
        }
    }

    /// Uploads a file unless the object exists. Returns whether it was new.
    pub async fn place(&self, id: &BlobId, bytes: u64, part: &Path) -> Result<bool> {
        if self.size(id).await? == Some(bytes) {
            return Ok(false);
        }
        self.send(self.key(id), bytes, part).await.map(|()| true)
    }

    /// The object of a name that the server gives itself.
    fn named(&self, name: &str) -> Key {
        Key::from(format!("{}/{NAMED}/{name}", self.prefix))
    }

    /// Uploads a file under a name, in the place of what has it.
    pub async fn put_named(&self, name: &str, bytes: u64, file: &Path) -> Result<()> {
        self.send(self.named(name), bytes, file).await
    }

    /// Streams the bytes that have a name; nothing where none do.
    pub async fn read_named(
        &self,
        name: &str,
    ) -> Result<Option<BoxStream<'static, std::io::Result<Bytes>>>> {
        match self.client.get(&self.named(name)).await {
            Ok(found) => Ok(Some(found.into_stream().map_err(std::io::Error::other).boxed())),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(self.failed("read an object")(error)),
        }
    }

    pub async fn remove_named(&self, name: &str) -> Result<()> {
        match self.client.delete(&self.named(name)).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(self.failed("remove an object")(error)),
        }
    }

    /// The names that begin with this folder, without it, and when each was last written.
    pub async fn list_named(&self, folder: &str) -> Result<Vec<(String, SystemTime)>> {
        let prefix = self.named(folder);
        let found = self.client.list(Some(&prefix)).try_collect::<Vec<_>>().await;
        let found = found.map_err(self.failed("list objects"))?;
        let named = found.into_iter().filter_map(|found| {
            let name = found.location.filename()?.to_owned();
            Some((name, SystemTime::from(found.last_modified)))
        });
        Ok(named.collect())
    }

    async fn send(&self, key: Key, bytes: u64, part: &Path) -> Result<()> {
        let path = part.to_owned();
        let open = move || File::open(&path).map_err(|error| Error::io("read", &path, error));
        let mut file = on_disk(open).await?;
        if bytes <= PART as u64 {
            let (_, all) = next_piece(file, part).await?;
            let put = self.client.put(&key, all.unwrap_or_default().into()).await;
            return put.map(drop).map_err(self.failed("write an object"));
        }
        let upload = self.client.put_multipart(&key).await;
        let upload = upload.map_err(self.failed("begin an object"))?;
        let size = PART.max(usize::try_from(bytes / MOST_PARTS + 1).unwrap_or(PART));
        let mut upload = WriteMultipart::new_with_chunk_size(upload, size);
        let sent = async {
            loop {
                let (rest, piece) = next_piece(file, part).await?;
                let Some(piece) = piece else { return Ok(()) };
                file = rest;
                let waited = upload.wait_for_capacity(AT_ONCE).await;
                waited.map_err(self.failed("write an object"))?;
                upload.put(piece);
            }
        };
        match sent.await {
            Ok(()) => {
                let put = upload.finish().await;
                put.map(drop).map_err(self.failed("write an object"))
            }
            Err(error) => {
                // The store bills the parts of an unfinished upload until a client removes them.
                let _ = upload.abort().await;
                Err(error)
            }
        }
    }

    /// Streams the bytes of an object. Returns after the response header, so that a missing object is an
    /// error here.
    pub async fn read(
        &self,
        id: &BlobId,
        range: Range<u64>,
    ) -> Result<BoxStream<'static, std::io::Result<Bytes>>> {
        let range = Some(GetRange::Bounded(range));
        let options = GetOptions { range, ..GetOptions::default() };
        match self.client.get_opts(&self.key(id), options).await {
            Ok(found) => Ok(found.into_stream().map_err(std::io::Error::other).boxed()),
            Err(object_store::Error::NotFound { .. }) => Err(Error::Missing(id.clone())),
            Err(error) => Err(self.failed("read an object")(error)),
        }
    }

    pub async fn remove(&self, id: &BlobId) -> Result<()> {
        match self.client.delete(&self.key(id)).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(self.failed("remove an object")(error)),
        }
    }

    /// The objects whose names have this prefix of two digits.
    pub async fn list(&self, first: &str) -> Result<Vec<Listed>> {
        let prefix = Key::from(format!("{}/{first}", self.prefix));
        let found = self.client.list(Some(&prefix)).try_collect::<Vec<_>>().await;
        let found = found.map_err(self.failed("list objects"))?;
        let listed = found.into_iter().filter_map(|found| {
            let id = format!("{first}{}", found.location.filename()?).parse().ok()?;
            Some(Listed { id, bytes: found.size, modified: SystemTime::from(found.last_modified) })
        });
        Ok(listed.collect())
    }
}

/// The next piece of a file; `None` at its end.
async fn next_piece(mut file: File, path: &Path) -> Result<(File, Option<Bytes>)> {
    let path = path.to_owned();
    on_disk(move || {
        let mut piece = Vec::with_capacity(PART);
        let read = (&mut file).take(PART as u64).read_to_end(&mut piece);
        read.map_err(|error| Error::io("read", &path, error))?;
        Ok((file, (!piece.is_empty()).then(|| Bytes::from(piece))))
    })
    .await
}
