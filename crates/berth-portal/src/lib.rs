//! The files of the portal, compressed, in the program. `make portal` builds them; a program that was
//! built without them has none, and says so.
//!
//! Deliberately absent: HTTP. Which encoding is sent, and for how long it is kept, the server decides.

use flate2::read::GzDecoder;
use std::borrow::Cow;
use std::io::Read;

#[cfg(test)]
mod table;

/// One file, under its path from the root of the portal.
#[derive(Debug)]
pub struct File {
    pub path: &'static str,
    pub media_type: &'static str,
    /// Another one when the file is.
    pub tag: &'static str,
    /// Where it is not kept compressed.
    pub plain: Option<&'static [u8]>,
    pub gzip: Option<&'static [u8]>,
    pub brotli: Option<&'static [u8]>,
}

impl File {
    /// Whether its name changes with what is in it, so that it can be kept for ever.
    pub fn is_hashed(&self) -> bool {
        self.path.starts_with("assets/")
    }

    /// As it is without compression, for the few who take nothing else.
    pub fn uncompressed(&self) -> Cow<'static, [u8]> {
        if let Some(plain) = self.plain {
            return Cow::Borrowed(plain);
        }
        let mut bytes = Vec::new();
        // The build has made it, so it can be read; one that cannot is empty.
        let _ = GzDecoder::new(self.gzip.unwrap_or_default()).read_to_end(&mut bytes);
        Cow::Owned(bytes)
    }
}

include!(concat!(env!("OUT_DIR"), "/files.rs"));

/// The page that everything begins with; none where the portal was left out.
pub fn index() -> Option<&'static File> {
    find("index.html")
}

/// The file of that path, without a slash in front.
pub fn find(path: &str) -> Option<&'static File> {
    FILES.iter().find(|file| file.path == path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use std::fs;
    use std::io::Write;

    #[test]
    fn a_folder_without_a_first_page_is_no_portal() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("notes.txt"), "x").unwrap();
        assert_eq!(table::of(folder.path()).unwrap(), table::empty());
    }

    #[test]
    fn every_file_is_in_the_table_once_with_what_it_is_compressed_to() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("assets")).unwrap();
        for name in [
            "index.html",
            "index.html.br",
            "index.html.gz",
            "assets/a-1.js",
            "assets/a-1.js.map",
            "assets/font-2.woff2",
            "stray.css.gz",
        ] {
            fs::write(folder.path().join(name), name).unwrap();
        }
        let table = table::of(folder.path()).unwrap();
        let paths: Vec<&str> = table
            .lines()
            .filter_map(|line| line.split("path: \"").nth(1)?.split('"').next())
            .collect();
        assert_eq!(paths, ["assets/a-1.js", "assets/font-2.woff2", "index.html"]);
        let page = table.lines().find(|line| line.contains("text/html")).unwrap();
        assert!(page.contains("plain: None") && page.contains("index.html.br"), "{page}");
        assert!(table.contains("font/woff2") && !table.contains(".map"), "{table}");
    }

    #[test]
    fn a_file_that_is_kept_compressed_can_be_read_without() {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(b"<!doctype html>").unwrap();
        let gzip: &'static [u8] = Box::leak(encoder.finish().unwrap().into_boxed_slice());
        let file = File {
            path: "index.html",
            media_type: "text/html",
            tag: "1",
            plain: None,
            gzip: Some(gzip),
            brotli: None,
        };
        assert_eq!(&*file.uncompressed(), b"<!doctype html>");
        assert!(!file.is_hashed());
    }

    #[test]
    fn a_portal_has_a_first_page_and_no_two_files_of_one_path() {
        let mut paths: Vec<&str> = FILES.iter().map(|file| file.path).collect();
        assert_eq!(index().is_some(), !paths.is_empty());
        paths.dedup();
        assert_eq!(paths.len(), FILES.len());
    }
}
