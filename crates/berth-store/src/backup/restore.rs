//! Making a database from a backup.

use super::Summary;
use super::format::{Checksum, FORMAT, Footer, Header, RowError, Shape, parse_row};
use super::write::Sink;
use crate::error::{Error, Result};
use crate::lock::Lock;
use crate::rows::{AuditRow, LOG};
use crate::schema;
use crate::store::{Options, Store};
use crate::table::{Existing, Marks, Row as _, insert_sql};
use crate::value::{Binds, Value};
use sqlx::AnyConnection;
use sqlx::{AssertSqlSafe, Connection, Row, query, query_with};
use std::collections::BTreeSet;
use std::path::Path;
use tokio::fs::File;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};

const RESTORE: &str = "restore a backup";

/// Rows for each statement; those of one page of a backup.
const ROWS_PER_STATEMENT: usize = 64;

/// Makes the empty database at `url` hold what the backup holds. It is all read back and compared
/// before any of it is kept.
pub async fn restore(path: &Path, url: &str, options: Options) -> Result<Summary> {
    let (header, footer) = examine(path).await?;
    let store = Store::open_as_is(url, options.clone()).await?;
    let mut connection = store.connect().await?;
    if store.version(&mut connection).await? == 0 {
        store.upgrade(&mut connection, header.schema).await?;
    }
    let lock = Lock::take(store.address(), &mut connection).await?;
    let filled = store.fill(&mut connection, path, &header, &footer).await;
    if filled.is_err() {
        // Closing the connection undoes it as well; the first error tells more.
        let _ = query("ROLLBACK").execute(&mut connection).await;
    }
    lock.release(&mut connection).await;
    let _ = connection.close().await;
    filled?;
    let store = Store::open(url, options).await?;
    let audit = store.verify_audit().await?;
    store.close().await;
    Ok(Summary { rows: footer.rows, sha256: footer.sha256, audit })
}

/// The ids of the keys that signed the audit log of a backup. The whole file is read.
pub async fn signing_keys(path: &Path) -> Result<BTreeSet<String>> {
    let (header, _) = examine(path).await?;
    let mut keys = BTreeSet::new();
    let audit = header.shape(AuditRow::TABLE.name);
    let Some((audit, at)) = audit.and_then(|shape| {
        let at = shape.column_names().iter().position(|column| *column == "key")?;
        Some((shape, at))
    }) else {
        // It is from before rows were signed.
        return Ok(keys);
    };
    let mut lines = open(path).await?;
    next_line(&mut lines, path).await?;
    while let Some(line) = next_line(&mut lines, path).await?.filter(|line| is_row(line)) {
        let (shape, row) = parse(&header, &line, path)?;
        if let Some(Value::Text(Some(key))) = row.into_iter().nth(at).filter(|_| shape == audit)
            && !key.is_empty()
        {
            keys.insert(key);
        }
    }
    Ok(keys)
}

impl Store {
    async fn fill(
        &self,
        connection: &mut AnyConnection,
        path: &Path,
        header: &Header,
        footer: &Footer,
    ) -> Result<()> {
        let failed = |source| self.error(RESTORE, source);
        if self.version(connection).await? != header.schema {
            return Err(self.not_empty());
        }
        query("BEGIN").execute(&mut *connection).await.map_err(failed)?;
        for shape in &header.tables {
            if !is_empty(connection, shape).await.map_err(failed)? {
                return Err(self.not_empty());
            }
        }
        self.insert_all(connection, path, header).await?;
        self.compare(connection, path, header, footer).await?;
        query("COMMIT").execute(connection).await.map_err(failed)?;
        Ok(())
    }

    async fn insert_all(
        &self,
        connection: &mut AnyConnection,
        path: &Path,
        header: &Header,
    ) -> Result<()> {
        let mut lines = open(path).await?;
        next_line(&mut lines, path).await?;
        let mut waiting: Vec<Vec<Value>> = Vec::new();
        let mut of: Option<&Shape> = None;
        loop {
            let line = next_line(&mut lines, path).await?;
            let row = line.filter(|line| is_row(line)).map(|line| parse(header, &line, path));
            let row = row.transpose()?;
            let next = row.as_ref().map(|(shape, _)| *shape);
            if let Some(shape) = of
                && (next != of || waiting.len() >= ROWS_PER_STATEMENT)
            {
                let rows = std::mem::take(&mut waiting);
                let inserted = insert(connection, shape, rows).await;
                inserted.map_err(|source| self.error(RESTORE, source))?;
            }
            let Some((shape, row)) = row else {
                return Ok(());
            };
            of = Some(shape);
            waiting.push(row);
        }
    }

    async fn compare(
        &self,
        connection: &mut AnyConnection,
        path: &Path,
        header: &Header,
        footer: &Footer,
    ) -> Result<()> {
        let mut sink = Sink { file: None, checksum: Checksum::new() };
        self.export(connection, header, &mut sink, path).await?;
        let found = sink.checksum.footer();
        if found == *footer {
            return Ok(());
        }
        let why = format!("{} of {} rows, or other ones", found.rows, footer.rows);
        Err(Error::Differs { database: self.database().to_owned(), why })
    }

    fn not_empty(&self) -> Error {
        Error::NotEmpty { database: self.database().to_owned() }
    }
}

/// Reads the whole file, to see that it is one.
async fn examine(path: &Path) -> Result<(Header, Footer)> {
    let bad = |why: &str| Error::BadBackup { path: path.to_owned(), why: why.to_owned() };
    let mut lines = open(path).await?;
    let first = next_line(&mut lines, path).await?.ok_or_else(|| bad("it is empty"))?;
    let header: Header =
        serde_json::from_str(&first).map_err(|_| bad("it does not begin like one"))?;
    if header.berth_backup > FORMAT || header.schema > schema::NEWEST {
        return Err(bad("a newer version of Berth made it; restore it with that version"));
    }
    if !header.is_sound() {
        return Err(bad("its first line is damaged"));
    }
    let mut checksum = Checksum::new();
    checksum.add(&first);
    let last = loop {
        let line = next_line(&mut lines, path).await?.ok_or_else(|| bad("its end is missing"))?;
        if !is_row(&line) {
            break line;
        }
        checksum.add(&line);
    };
    let footer: Footer = serde_json::from_str(&last).map_err(|_| bad("its end is missing"))?;
    if checksum.footer() != footer {
        return Err(bad("its checksum is wrong"));
    }
    let more = next_line(&mut lines, path).await?.is_some();
    match (&header.attached, more) {
        (Some(name), false) => Err(bad(&format!("its part with {name} is missing"))),
        (None, true) => Err(bad("something follows its end")),
        _ => Ok((header, footer)),
    }
}

/// The lines after this store's rows, if the backup has an attachment with this name.
pub async fn attached(path: &Path, name: &str) -> Result<Option<Lines<BufReader<File>>>> {
    let (header, _) = examine(path).await?;
    if header.attached.as_deref() != Some(name) {
        return Ok(None);
    }
    let mut lines = open(path).await?;
    next_line(&mut lines, path).await?;
    while next_line(&mut lines, path).await?.is_some_and(|line| is_row(&line)) {}
    Ok(Some(lines))
}

/// The last line is an object, not a row.
fn is_row(line: &str) -> bool {
    line.starts_with('[')
}

fn parse<'h>(header: &'h Header, line: &str, path: &Path) -> Result<(&'h Shape, Vec<Value>)> {
    let bad = |error: RowError| Error::BadBackup { path: path.to_owned(), why: error.to_string() };
    parse_row(header, line).map_err(bad)
}

async fn open(path: &Path) -> Result<Lines<BufReader<File>>> {
    let file = File::open(path).await;
    let file = file.map_err(|error| Error::io("open the backup", path, error))?;
    Ok(BufReader::new(file).lines())
}

async fn next_line(lines: &mut Lines<BufReader<File>>, path: &Path) -> Result<Option<String>> {
    lines.next_line().await.map_err(|error| Error::io("read the backup", path, error))
}

/// The row of the log is always there: a database is empty if nothing was ever committed to it.
async fn is_empty(connection: &mut AnyConnection, shape: &Shape) -> sqlx::Result<bool> {
    let sql = if shape.name == LOG.name {
        "SELECT COUNT(*) FROM log WHERE commits > 0".to_owned()
    } else {
        format!("SELECT COUNT(*) FROM (SELECT 1 FROM {} LIMIT 1) AS any_row", shape.name)
    };
    let row = query(AssertSqlSafe(sql)).fetch_one(connection).await?;
    Ok(row.try_get::<i64, _>(0)? == 0)
}

async fn insert(
    connection: &mut AnyConnection,
    shape: &Shape,
    rows: Vec<Vec<Value>>,
) -> sqlx::Result<()> {
    let existing = if shape.name == LOG.name { Existing::Replace } else { Existing::Refuse };
    let columns = shape.column_names();
    let marks = Marks::of(connection);
    let sql = insert_sql(&shape.name, &columns, shape.keys, rows.len(), existing, marks);
    let mut binds = Binds::default();
    binds.push_all(rows.into_iter().flatten());
    query_with(AssertSqlSafe(sql), binds.into_arguments()).execute(connection).await?;
    Ok(())
}
