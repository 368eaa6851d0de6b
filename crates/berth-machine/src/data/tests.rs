//! Data that is put on the machine: as links or as copies.

use super::*;
use berth_blobs::{Blobs, Options};
use berth_model::{Span, Time};
use berth_service::BlobLimits;
use berth_store::{Batch, BlobNameRow, BlobRow, TeamRow, Writer, sqlite_url};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use tempfile::TempDir;

struct Stage {
    home: Home,
    _folder: TempDir,
    store: Store,
    writer: Writer,
    book: Arc<BlobBook>,
}

impl Stage {
    async fn set() -> Stage {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::open(&folder.path().join("home")).unwrap();
        let url = sqlite_url(&home.database());
        let store = Store::open(&url, berth_store::Options::default()).await.unwrap();
        let mut writer = store.writer("a").await.unwrap();
        let mut batch = Batch::default();
        let name = || "nlp".to_owned();
        batch.put(&TeamRow { name: name(), queue: name(), created: Time(1), detail: "{}".into() });
        writer.commit(&batch).await.unwrap();
        let options = Options { folder: home.blobs(), bucket: None, reserve: 0, most: 1 << 30 };
        let limits = BlobLimits { quota: 1 << 30, grace: Span::ZERO };
        let book = Arc::new(BlobBook::new(Blobs::open(&options).unwrap(), limits));
        Stage { home, _folder: folder, store, writer, book }
    }

    fn cache(&self, isolated: bool, most: u64) -> DataCache {
        let options = DataOptions { most, reserve: 0, isolated };
        DataCache::open(&self.home, self.store.clone(), self.book.clone(), options).unwrap()
    }

    /// Keeps an object for the team; its MD5 sum.
    async fn push(&mut self, bytes: &[u8], end: &str) -> (BlobId, String) {
        let upload = self.book.blobs.begin(None, u64::MAX).await.unwrap();
        let upload = upload.write(bytes.to_vec().into()).await.unwrap();
        let placed = self.book.blobs.place(upload.finish().await.unwrap()).await.unwrap();
        let mut batch = Batch::default();
        batch.put(&BlobRow {
            sha256: placed.id.to_string(),
            md5: placed.md5.clone(),
            bytes: placed.bytes,
            created: Time(1),
            loose: None,
        });
        batch.put(&BlobNameRow {
            team: "nlp".into(),
            kind: "dvc".into(),
            name: format!("{}{end}", placed.md5),
            sha256: placed.id.to_string(),
            bytes: placed.bytes,
            created: Time(1),
            by: "ada".into(),
        });
        self.writer.commit(&batch).await.unwrap();
        (placed.id, placed.md5)
    }

    /// A folder with these files; what a job has of it.
    async fn folder(&mut self, files: &[(&str, &str)]) -> DataRef {
        let mut lines = Vec::new();
        for (path, text) in files {
            let (_, md5) = self.push(text.as_bytes(), "").await;
            lines.push(format!(r#"{{"md5": "{md5}", "relpath": "{path}"}}"#));
        }
        let list = format!("[{}]", lines.join(", "));
        let (_, md5) = self.push(list.as_bytes(), ".dir").await;
        format!("dvc:c4@v1#{md5}.dir").parse().unwrap()
    }

    async fn provide(&self, cache: &DataCache, data: &DataRef) -> Result<PathBuf, DataError> {
        let folder = folder_of(&self.home, "nlp", data).unwrap();
        cache.provide_one("nlp", data, &folder).await.map(|()| folder)
    }
}

fn count(count: &AtomicU64) -> u64 {
    count.load(Ordering::Relaxed)
}

const FILES: [(&str, &str); 3] = [("a", "alpha"), ("sub/b", "beta"), ("sub/same", "alpha")];

#[tokio::test]
async fn where_jobs_are_isolated_the_files_are_those_of_the_store() {
    let mut stage = Stage::set().await;
    let data = stage.folder(&FILES).await;
    let cache = stage.cache(true, 0);
    let folder = stage.provide(&cache, &data).await.unwrap();
    assert_eq!(fs::read_to_string(folder.join("sub/b")).unwrap(), "beta");
    let found = fs::metadata(folder.join("a")).unwrap();
    assert_eq!((found.nlink(), found.permissions().mode() & 0o777), (3, 0o444));
    assert_eq!(cache.copied_now(), 0);
    stage.provide(&cache, &data).await.unwrap();
    assert_eq!((count(&cache.counts.fetched), count(&cache.counts.found)), (1, 1));
}

#[tokio::test]
async fn where_they_are_not_the_files_are_copies_and_the_next_version_copies_what_is_new() {
    let mut stage = Stage::set().await;
    let first = stage.folder(&FILES).await;
    let second = stage.folder(&[("a", "alpha"), ("c", "gamma")]).await;
    let cache = stage.cache(false, 1_000);
    let folder = stage.provide(&cache, &first).await.unwrap();
    assert_eq!(count(&cache.counts.copied_bytes), 9, "alpha once, and beta");
    stage.provide(&cache, &first).await.unwrap();
    assert_eq!(count(&cache.counts.copied_bytes), 9);
    stage.provide(&cache, &second).await.unwrap();
    assert_eq!((count(&cache.counts.copied_bytes), cache.copied_now()), (14, 14));
    let (id, _) = berth_blobs::Sums::of(b"alpha");
    let kept = fs::metadata(stage.book.blobs.file(&id).unwrap()).unwrap();
    assert_ne!(kept.ino(), fs::metadata(folder.join("a")).unwrap().ino());
    // What another start finds of it.
    assert_eq!(stage.cache(false, 1_000).copied_now(), 14);
}

#[tokio::test]
async fn what_is_too_large_for_the_machine_is_refused_and_what_is_damaged_is_not_used() {
    let mut stage = Stage::set().await;
    let data = stage.folder(&FILES).await;
    let cache = stage.cache(false, 8);
    let error = stage.provide(&cache, &data).await.unwrap_err();
    assert!(matches!(error, DataError::TooLarge { needed: 9, most: 8, .. }), "{error}");
    assert!(!error.is_passing() && error.to_string().contains("--data-cache"));

    let (id, _) = berth_blobs::Sums::of(b"beta");
    let kept = stage.book.blobs.file(&id).unwrap();
    fs::remove_file(&kept).unwrap();
    fs::write(&kept, "BETA").unwrap();
    let cache = stage.cache(false, 1_000);
    let error = stage.provide(&cache, &data).await.unwrap_err();
    assert!(matches!(error, DataError::Changed { .. }), "{error}");
    assert!(!folder_of(&stage.home, "nlp", &data).unwrap().exists());
    fs::write(&kept, "beta").unwrap();
    stage.provide(&cache, &data).await.unwrap();
}

#[tokio::test]
async fn one_file_is_in_a_folder_and_is_called_as_its_data() {
    let mut stage = Stage::set().await;
    let (_, md5) = stage.push(b"weights", "").await;
    let data: DataRef = format!("dvc:bert@v2#{md5}").parse().unwrap();
    let folder = stage.provide(&stage.cache(true, 0), &data).await.unwrap();
    assert_eq!(fs::read_to_string(folder.join("bert")).unwrap(), "weights");
    let absent: DataRef = format!("dvc:bert@v3#{}", "0a".repeat(16)).parse().unwrap();
    let error = stage.provide(&stage.cache(true, 0), &absent).await.unwrap_err();
    assert!(!error.is_passing() && error.to_string().contains("has not pushed"), "{error}");
}
