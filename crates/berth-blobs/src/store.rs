//! The store as a whole.

use crate::address::{Address, Keys};
use crate::bucket::Bucket;
use crate::error::{Error, Result, on_disk};
use crate::folder::{Folder, private};
use crate::id::BlobId;
use crate::listed::Listed;
use crate::read::{self, Content};
use crate::room::Room;
use crate::upload::{Placed, Upload, Whole};
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

/// Where objects are kept.
#[derive(Debug, Clone)]
pub struct Options {
    /// The folder of uploads and, without a bucket, of objects.
    pub folder: PathBuf,
    pub bucket: Option<(Address, Keys)>,
    /// The free space to reserve on the disk of the folder.
    pub reserve: u64,
    /// The maximum size of an object.
    pub most: u64,
}

/// Cheap to clone.
#[derive(Debug, Clone)]
pub struct Blobs(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    new: PathBuf,
    place: Place,
    room: Room,
    most: u64,
}

#[derive(Debug)]
enum Place {
    Folder(Folder),
    Bucket(Bucket),
}

impl Blobs {
    /// Opens the store and removes unfinished uploads of an earlier process.
    pub fn open(options: &Options) -> Result<Blobs> {
        let Options { folder, bucket, reserve, most } = options;
        let new = folder.join("new");
        private(&new)?;
        clear(&new)?;
        let place = match bucket {
            Some((address, keys)) => Place::Bucket(Bucket::open(address, keys)?),
            None => Place::Folder(Folder::open(folder.join("sha256"))?),
        };
        let room = Room::new(folder, *reserve);
        Ok(Blobs(Arc::new(Inner { new, place, room, most: *most })))
    }

    /// Whether the store is reachable.
    pub async fn check(&self) -> Result<()> {
        match &self.0.place {
            Place::Folder(_) => Ok(()),
            Place::Bucket(bucket) => bucket.check().await,
        }
    }

    /// The location, for messages.
    pub fn shown(&self) -> &str {
        match &self.0.place {
            Place::Folder(_) => "folder",
            Place::Bucket(bucket) => bucket.shown(),
        }
    }

    /// Begins an upload of at most `most` bytes.
    pub async fn begin(&self, said: Option<u64>, most: u64) -> Result<Upload> {
        let most = most.min(self.0.most);
        Upload::begin(&self.0.new, self.0.room.clone(), said, most).await
    }

    /// Stores an object unless it exists.
    pub async fn place(&self, whole: Whole) -> Result<Placed> {
        let Whole { id, md5, bytes, part } = whole;
        let is_new = match &self.0.place {
            Place::Folder(folder) => {
                let (folder, id) = (folder.clone(), id.clone());
                on_disk(move || folder.place(&id, bytes, part.path())).await?
            }
            Place::Bucket(bucket) => bucket.place(&id, bytes, part.path()).await?,
        };
        Ok(Placed { id, md5, bytes, is_new })
    }

    /// Streams a range of an object. A missing object is an error here.
    pub async fn read(&self, id: &BlobId, range: Range<u64>) -> Result<Content> {
        if range.is_empty() {
            return Ok(Box::pin(futures_util::stream::empty()));
        }
        match &self.0.place {
            Place::Folder(folder) => {
                let (folder, id) = (folder.clone(), id.clone());
                let file = on_disk(move || folder.open_file(&id)).await?;
                Ok(read::of_file(file, range))
            }
            Place::Bucket(bucket) => bucket.read(id, range).await,
        }
    }

    /// The file of an object, if the store is a folder.
    pub fn file(&self, id: &BlobId) -> Option<PathBuf> {
        match &self.0.place {
            Place::Folder(folder) => Some(folder.path(id)),
            Place::Bucket(_) => None,
        }
    }

    /// Whether the store has an object with all its bytes.
    pub async fn has(&self, id: &BlobId, bytes: u64) -> Result<bool> {
        let found = match &self.0.place {
            Place::Folder(folder) => {
                let (folder, id) = (folder.clone(), id.clone());
                on_disk(move || folder.size(&id)).await?
            }
            Place::Bucket(bucket) => bucket.size(id).await?,
        };
        Ok(found == Some(bytes))
    }

    pub async fn remove(&self, id: &BlobId) -> Result<()> {
        match &self.0.place {
            Place::Folder(folder) => {
                let (folder, id) = (folder.clone(), id.clone());
                on_disk(move || folder.remove(&id)).await
            }
            Place::Bucket(bucket) => bucket.remove(id).await,
        }
    }

    /// Whether objects are in a bucket, so that other servers reach them.
    pub fn is_shared(&self) -> bool {
        matches!(self.0.place, Place::Bucket(_))
    }

    /// Keeps a file in the bucket under a name that the server gives it. Without a bucket nothing is
    /// done, and the answer is false.
    pub async fn put_named(&self, name: &str, bytes: u64, file: &Path) -> Result<bool> {
        match &self.0.place {
            Place::Folder(_) => Ok(false),
            Place::Bucket(bucket) => bucket.put_named(name, bytes, file).await.map(|()| true),
        }
    }

    /// Streams the object of this name in the bucket; `None` if the bucket has no such object.
    pub async fn read_named(&self, name: &str) -> Result<Option<Content>> {
        match &self.0.place {
            Place::Folder(_) => Ok(None),
            Place::Bucket(bucket) => bucket.read_named(name).await,
        }
    }

    pub async fn remove_named(&self, name: &str) -> Result<()> {
        match &self.0.place {
            Place::Folder(_) => Ok(()),
            Place::Bucket(bucket) => bucket.remove_named(name).await,
        }
    }

    /// What a folder of names has, and when each was last written.
    pub async fn list_named(&self, folder: &str) -> Result<Vec<(String, SystemTime)>> {
        match &self.0.place {
            Place::Folder(_) => Ok(Vec::new()),
            Place::Bucket(bucket) => bucket.list_named(folder).await,
        }
    }

    /// The objects whose names have this first byte.
    pub async fn list(&self, first: u8) -> Result<Vec<Listed>> {
        let first = hex::encode([first]);
        match &self.0.place {
            Place::Folder(folder) => {
                let folder = folder.clone();
                on_disk(move || folder.list(&first)).await
            }
            Place::Bucket(bucket) => bucket.list(&first).await,
        }
    }
}

fn clear(folder: &Path) -> Result<()> {
    let failed = |error| Error::io("clear", folder, error);
    for entry in fs::read_dir(folder).map_err(failed)? {
        fs::remove_file(entry.map_err(failed)?.path()).map_err(failed)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sums::Sums;
    use bytes::Bytes;
    use futures_util::TryStreamExt;

    fn options(folder: &Path) -> Options {
        Options { folder: folder.to_owned(), bucket: None, reserve: 0, most: 10 << 20 }
    }

    async fn take(blobs: &Blobs, bytes: &[u8]) -> Placed {
        let mut upload = blobs.begin(None, u64::MAX).await.unwrap();
        for piece in bytes.chunks(700_000) {
            upload = upload.write(Bytes::copy_from_slice(piece)).await.unwrap();
        }
        blobs.place(upload.finish().await.unwrap()).await.unwrap()
    }

    async fn whole(blobs: &Blobs, id: &BlobId, range: Range<u64>) -> Vec<u8> {
        let pieces: Vec<Bytes> = blobs.read(id, range).await.unwrap().try_collect().await.unwrap();
        pieces.concat()
    }

    fn parts(folder: &Path) -> usize {
        fs::read_dir(folder.join("new")).unwrap().count()
    }

    #[tokio::test]
    async fn what_is_taken_in_is_given_out_in_whole_and_in_part_and_kept_once() {
        let folder = tempfile::tempdir().unwrap();
        let blobs = Blobs::open(&options(folder.path())).unwrap();
        let bytes: Vec<u8> = (0..3_000_000u32).map(|at| (at % 251) as u8).collect();
        let placed = take(&blobs, &bytes).await;
        let (id, md5) = Sums::of(&bytes);
        assert_eq!((&placed.id, &placed.md5, placed.is_new), (&id, &md5, true));
        assert!(!take(&blobs, &bytes).await.is_new);
        assert!(blobs.has(&id, 3_000_000).await.unwrap());
        assert!(!blobs.has(&id, 2_999_999).await.unwrap(), "a truncated object is none");
        assert_eq!(parts(folder.path()), 0);
        assert_eq!(whole(&blobs, &id, 0..3_000_000).await, bytes);
        assert_eq!(whole(&blobs, &id, 999_999..1_500_001).await, bytes[999_999..1_500_001]);
        let first = u8::from_str_radix(&id.as_str()[..2], 16).unwrap();
        let listed = blobs.list(first).await.unwrap();
        assert_eq!(listed.iter().map(|one| &one.id).collect::<Vec<_>>(), [&id]);
        blobs.remove(&id).await.unwrap();
        assert!(matches!(blobs.read(&id, 0..1).await, Err(Error::Missing(_))));
        assert!(!blobs.has(&id, 3_000_000).await.unwrap());
    }

    #[tokio::test]
    async fn an_upload_that_is_given_up_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let blobs = Blobs::open(&options(folder.path())).unwrap();
        let upload = blobs.begin(Some(10), u64::MAX).await.unwrap();
        let upload = upload.write(Bytes::from_static(b"half")).await.unwrap();
        assert_eq!(parts(folder.path()), 1);
        assert!(matches!(upload.finish().await, Err(Error::CutOff { said: 10, came: 4 })));
        assert_eq!(parts(folder.path()), 0);
        drop(blobs.begin(None, u64::MAX).await.unwrap());
        assert_eq!(parts(folder.path()), 0);
    }

    #[tokio::test]
    async fn what_is_too_large_or_finds_no_room_is_refused_before_it_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let blobs = Blobs::open(&options(folder.path())).unwrap();
        assert!(matches!(blobs.begin(Some(11), 10).await, Err(Error::TooLarge { most: 10 })));
        let upload = blobs.begin(None, 3).await.unwrap();
        assert!(upload.write(Bytes::from_static(b"four")).await.is_err());
        let full = Options { reserve: u64::MAX, ..options(folder.path()) };
        let full = Blobs::open(&full).unwrap();
        assert!(full.begin(None, u64::MAX).await.is_err_and(|error| error.is_full()));
        assert_eq!(parts(folder.path()), 0);
    }

    #[tokio::test]
    async fn what_a_killed_server_left_half_written_is_gone_after_a_start() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("new")).unwrap();
        fs::write(folder.path().join("new/1-1.part"), "half").unwrap();
        Blobs::open(&options(folder.path())).unwrap();
        assert_eq!(parts(folder.path()), 0);
    }
}
