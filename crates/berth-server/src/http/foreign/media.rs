//! What kind of file an artifact is, by the end of its name. What is text is given as plain text,
//! whatever it describes.

const TEXT: &[&str] = &[
    "MLmodel",
    "MLproject",
    "mlmodel",
    "mlproject",
    "cf",
    "cfg",
    "cnf",
    "conf",
    "config",
    "csv",
    "err",
    "hocon",
    "ini",
    "jinja",
    "jinja2",
    "js",
    "json",
    "log",
    "md",
    "out",
    "prop",
    "properties",
    "py",
    "py3",
    "rst",
    "sh",
    "sql",
    "toml",
    "tsv",
    "txt",
    "xml",
    "yaml",
    "yml",
];

/// In the order of the ends.
const OTHERS: &[(&str, &str)] = &[
    ("bmp", "image/bmp"),
    ("gif", "image/gif"),
    ("gz", "application/gzip"),
    ("htm", "text/html"),
    ("html", "text/html"),
    ("ico", "image/vnd.microsoft.icon"),
    ("jpeg", "image/jpeg"),
    ("jpg", "image/jpeg"),
    ("mp3", "audio/mpeg"),
    ("mp4", "video/mp4"),
    ("pdf", "application/pdf"),
    ("png", "image/png"),
    ("svg", "image/svg+xml"),
    ("tar", "application/x-tar"),
    ("tif", "image/tiff"),
    ("tiff", "image/tiff"),
    ("wav", "audio/x-wav"),
    ("webm", "video/webm"),
    ("webp", "image/webp"),
    ("zip", "application/zip"),
];

pub fn guess(name: &str) -> &'static str {
    let end = name.rsplit_once('.').map_or(name, |(_, end)| end);
    if TEXT.contains(&end) {
        return "text/plain";
    }
    let end = end.to_ascii_lowercase();
    let found = OTHERS.binary_search_by_key(&end.as_str(), |(end, _)| end);
    found.map_or("application/octet-stream", |at| OTHERS[at].1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_what_the_end_of_its_name_says() {
        assert!(OTHERS.is_sorted());
        for (name, kind) in [
            ("c.txt", "text/plain"),
            ("metrics.json", "text/plain"),
            ("MLmodel", "text/plain"),
            ("model.pkl", "application/octet-stream"),
            ("plot.PNG", "image/png"),
            ("page.html", "text/html"),
            ("no end", "application/octet-stream"),
        ] {
            assert_eq!(guess(name), kind, "{name}");
        }
    }
}
