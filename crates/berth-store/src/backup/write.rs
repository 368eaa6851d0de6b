//! Making a backup.

use super::Summary;
use super::format::{Checksum, Footer, Header, row_line};
use crate::address::Backend;
use crate::error::{Error, Result};
use crate::store::Store;
use sqlx::AnyConnection;
use sqlx::{Connection, query};
use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use tokio::fs::{self, File, OpenOptions};
use tokio::io::{AsyncWriteExt, BufWriter};

const READ: &str = "read it for a backup";

/// The rows of another store, attached to a backup.
pub trait Attachment: Send + Sync {
    /// The name in the first line of the backup.
    fn name(&self) -> &str;
    fn write<'a>(
        &'a self,
        file: &'a mut BufWriter<File>,
    ) -> Pin<Box<dyn Future<Output = io::Result<()>> + Send + 'a>>;
}

impl Store {
    /// Writes everything, as it is at one moment, into a new file that only its owner can read.
    /// Others go on reading and writing meanwhile. There is a whole file in the end, or none.
    pub async fn backup(&self, path: &Path) -> Result<Summary> {
        self.backup_with(path, None).await
    }

    /// The same, followed by the rows of another store, which are slightly newer.
    pub async fn backup_with(
        &self,
        path: &Path,
        attachment: Option<&dyn Attachment>,
    ) -> Result<Summary> {
        let audit = self.verify_audit().await?;
        if fs::try_exists(path).await.map_err(|error| Error::io("look at", path, error))? {
            return Err(Error::Exists { path: path.to_owned() });
        }
        let part = beside(path);
        let written = self.write_part(&part, attachment).await;
        let footer = match written {
            Ok(footer) => footer,
            Err(error) => {
                // Ignore this error: the backup is unfinished, and the first error is more useful.
                let _ = fs::remove_file(&part).await;
                return Err(error);
            }
        };
        publish(&part, path).await?;
        Ok(Summary { rows: footer.rows, sha256: footer.sha256, audit })
    }

    async fn write_part(&self, part: &Path, attachment: Option<&dyn Attachment>) -> Result<Footer> {
        let failed = |error| Error::io("write the backup", part, error);
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(0o600);
        let file = options.open(part).await.map_err(failed)?;
        let mut sink = Sink { file: Some(BufWriter::new(file)), checksum: Checksum::new() };

        let mut connection = self.connect().await?;
        let begin = match self.backend() {
            Backend::Sqlite => "BEGIN",
            Backend::Postgres => "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
        };
        let begun = query(begin).execute(&mut connection).await;
        begun.map_err(|source| self.error(READ, source))?;
        let header = Header::current(attachment.map(Attachment::name));
        self.export(&mut connection, &header, &mut sink, part).await?;
        // The transaction changed nothing: leaving it is enough.
        let _ = connection.close().await;
        let (footer, mut file) = sink.end().await.map_err(failed)?;
        if let Some(file) = &mut file {
            if let Some(attachment) = attachment {
                attachment.write(file).await.map_err(failed)?;
            }
            file.flush().await.map_err(failed)?;
            file.get_ref().sync_all().await.map_err(failed)?;
        }
        Ok(footer)
    }

    /// Hands every row to the sink, in an order that depends on the rows alone.
    pub(super) async fn export(
        &self,
        connection: &mut AnyConnection,
        header: &Header,
        sink: &mut Sink,
        path: &Path,
    ) -> Result<()> {
        let failed = |error| Error::io("write the backup", path, error);
        let first = serde_json::to_string(header)
            .map_err(|error| Error::Encode { what: "a backup", why: error.to_string() })?;
        sink.line(&first).await.map_err(failed)?;
        for shape in &header.tables {
            let mut after = None;
            loop {
                let page = shape.page(connection, after).await;
                let page = page.map_err(|source| self.error(READ, source))?;
                let Some(last) = page.last() else {
                    break;
                };
                after = Some(last[..shape.keys].to_vec());
                for row in &page {
                    sink.line(&row_line(&shape.name, row)).await.map_err(failed)?;
                }
            }
        }
        Ok(())
    }
}

/// Where lines go: into a file, or only into the checksum.
pub(super) struct Sink {
    pub file: Option<BufWriter<File>>,
    pub checksum: Checksum,
}

impl Sink {
    async fn line(&mut self, line: &str) -> io::Result<()> {
        self.checksum.add(line);
        if let Some(file) = &mut self.file {
            file.write_all(line.as_bytes()).await?;
            file.write_all(b"\n").await?;
        }
        Ok(())
    }

    /// Writes the last line.
    async fn end(mut self) -> io::Result<(Footer, Option<BufWriter<File>>)> {
        let footer = self.checksum.footer();
        if let Some(file) = &mut self.file {
            file.write_all(serde_json::to_string(&footer)?.as_bytes()).await?;
            file.write_all(b"\n").await?;
        }
        Ok((footer, self.file))
    }
}

fn beside(path: &Path) -> PathBuf {
    let mut part = path.as_os_str().to_owned();
    part.push(".part");
    PathBuf::from(part)
}

/// Gives the finished file its name, unless there is a file of that name by now: a link fails where
/// a rename would overwrite.
async fn publish(part: &Path, path: &Path) -> Result<()> {
    let linked = fs::hard_link(part, path).await;
    let _ = fs::remove_file(part).await;
    match linked {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            return Err(Error::Exists { path: path.to_owned() });
        }
        Err(error) => return Err(Error::io("name the backup", path, error)),
    }
    // The name itself is on disk only when its folder is.
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    let failed = |error| Error::io("write the folder", folder, error);
    File::open(folder).await.map_err(failed)?.sync_all().await.map_err(failed)
}
