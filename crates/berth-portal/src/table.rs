//! The table of files, as Rust. The build script includes this module.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::io;
use std::path::{Path, PathBuf};

/// A file, and the same compressed.
#[derive(Debug, Default)]
struct Found {
    plain: Option<PathBuf>,
    gzip: Option<PathBuf>,
    brotli: Option<PathBuf>,
}

/// The table of a build without the portal.
pub fn empty() -> String {
    "pub static FILES: &[File] = &[];\n".to_owned()
}

/// The table of all files of a folder. Without its first page there is no portal.
pub fn of(dist: &Path) -> io::Result<String> {
    if !dist.join("index.html").is_file() {
        return Ok(empty());
    }
    let mut found = BTreeMap::new();
    gather(dist, dist, &mut found)?;
    let mut table = "pub static FILES: &[File] = &[\n".to_owned();
    for (path, Found { plain, gzip, brotli }) in found {
        // A compressed file alone is none that a page asks for.
        let Some(plain) = plain else { continue };
        let tag = tag(&std::fs::read(&plain)?);
        // Whoever takes nothing compressed gets it from the gzip, so the bytes are in here once less.
        let plain = if gzip.is_some() { None } else { Some(plain) };
        let (plain, gzip, brotli) = (included(plain), included(gzip), included(brotli));
        let media = media_type(&path);
        let _ = writeln!(
            table,
            "    File {{ path: {path:?}, media_type: {media:?}, tag: {tag:?}, plain: {plain}, \
             gzip: {gzip}, brotli: {brotli} }},"
        );
    }
    table.push_str("];\n");
    Ok(table)
}

fn included(path: Option<PathBuf>) -> String {
    path.map_or_else(|| "None".to_owned(), |path| format!("Some(include_bytes!({path:?}))"))
}

fn gather(root: &Path, folder: &Path, found: &mut BTreeMap<String, Found>) -> io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            gather(root, &path, found)?;
            continue;
        }
        let inside = path.strip_prefix(root).map_err(io::Error::other)?;
        let Some(name) = inside.to_str() else { continue };
        // What only a debugger reads stays out.
        if name.contains(".map") {
            continue;
        }
        let name = name.to_owned();
        if let Some(of) = name.strip_suffix(".gz") {
            found.entry(of.to_owned()).or_default().gzip = Some(path);
        } else if let Some(of) = name.strip_suffix(".br") {
            found.entry(of.to_owned()).or_default().brotli = Some(path);
        } else {
            found.entry(name).or_default().plain = Some(path);
        }
    }
    Ok(())
}

/// What is another one when the file is: FNV-1a, which needs no crate.
fn tag(bytes: &[u8]) -> String {
    let hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    format!("{hash:016x}")
}

fn media_type(path: &str) -> &'static str {
    match path.rsplit_once('.').map_or("", |(_, ending)| ending) {
        "html" => "text/html; charset=utf-8",
        "js" | "mjs" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "json" => "application/json",
        "webmanifest" => "application/manifest+json",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "ico" => "image/x-icon",
        "woff2" => "font/woff2",
        "wasm" => "application/wasm",
        "txt" => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}
