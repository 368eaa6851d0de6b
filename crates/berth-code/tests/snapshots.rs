//! What is in a snapshot, and what a crafted archive can do.

use berth_code::{
    Limits, Origin, PackError, Packed, UnpackError, cut_diff, pack, pack_with_origin, unpack,
};
use flate2::Compression;
use flate2::write::GzEncoder;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use tar::{Builder, EntryType, Header};
use tempfile::{TempDir, tempdir};

fn write(folder: &Path, path: &str, text: &str) {
    let path = folder.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn project() -> TempDir {
    let folder = tempdir().unwrap();
    for (path, text) in [
        ("train.py", "print(1)"),
        ("src/net.py", "net"),
        (".gitignore", "*.ckpt\n/data/\n"),
        (".berthignore", "notes.txt\n"),
        (".env.example", "A=1"),
        ("notes.txt", "private"),
        ("data/big.bin", "data"),
        ("src/last.ckpt", "weights"),
        (".git/config", "[core]"),
        (".venv/bin/python", "python"),
        ("src/__pycache__/net.pyc", "pyc"),
    ] {
        write(folder.path(), path, text);
    }
    fs::set_permissions(folder.path().join("train.py"), fs::Permissions::from_mode(0o4750))
        .unwrap();
    symlink("train.py", folder.path().join("main.py")).unwrap();
    folder
}

fn packed(folder: &Path) -> (Packed, Vec<u8>) {
    let mut bytes = Vec::new();
    (pack(folder, Limits::default(), &mut bytes).unwrap(), bytes)
}

fn files(folder: &Path) -> Vec<String> {
    fn walk(root: &Path, folder: &Path, all: &mut Vec<String>) {
        for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            match entry.is_dir() && !entry.is_symlink() {
                true => walk(root, &entry, all),
                false => all.push(entry.strip_prefix(root).unwrap().display().to_string()),
            }
        }
    }
    let mut all = Vec::new();
    walk(folder, folder, &mut all);
    all.sort();
    all
}

#[test]
fn what_git_ignores_stays_at_home_and_the_rest_comes_back_as_it_was() {
    let (folder, back) = (project(), tempdir().unwrap());
    let (packed, bytes) = packed(folder.path());
    assert_eq!((packed.files, packed.packed), (6, bytes.len() as u64));
    unpack(&bytes[..], back.path()).unwrap();
    let expect =
        [".berthignore", ".env.example", ".gitignore", "main.py", "src/net.py", "train.py"];
    assert_eq!(files(back.path()), expect);
    assert_eq!(fs::read_to_string(back.path().join("main.py")).unwrap(), "print(1)");
    let mode = |path| fs::metadata(back.path().join(path)).unwrap().permissions().mode() & 0o7777;
    assert_eq!((mode("train.py"), mode("src/net.py")), (0o755, 0o644), "no set-id bit comes along");
}

#[test]
fn the_same_files_make_the_same_archive() {
    let (one, other) = (project(), project());
    let (first, bytes) = packed(one.path());
    assert_eq!(packed(other.path()), (first.clone(), bytes.clone()));
    write(other.path(), "src/net.py", "another");
    assert_ne!(packed(other.path()).0.id, first.id);
}

#[test]
fn a_folder_that_is_too_large_names_its_largest_file() {
    let folder = project();
    write(folder.path(), "model.bin", &"x".repeat(3_000_000));
    let limits = Limits { bytes: 2_000_000, ..Limits::default() };
    let refused = pack(folder.path(), limits, std::io::sink()).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "the folder has more than 2 MB of files that git does not ignore; the largest is \
         model.bin with 3 MB"
    );
    let limits = Limits { files: 3, ..Limits::default() };
    let refused = pack(folder.path(), limits, std::io::sink()).unwrap_err();
    assert!(matches!(refused, PackError::TooMany { most: 3 }), "{refused}");
}

/// An archive that no folder would make.
fn crafted(entries: &[(&str, EntryType, &str)]) -> Vec<u8> {
    let mut archive = Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    for (path, kind, content) in entries {
        let mut header = Header::new_gnu();
        header.set_entry_type(*kind);
        header.set_mode(0o7777);
        // By hand: the library refuses such names.
        let name = &mut header.as_old_mut().name;
        name[..path.len()].copy_from_slice(path.as_bytes());
        if *kind == EntryType::Regular {
            header.set_size(content.len() as u64);
            header.set_cksum();
            archive.append(&header, content.as_bytes()).unwrap();
        } else {
            let link = &mut header.as_old_mut().linkname;
            link[..content.len()].copy_from_slice(content.as_bytes());
            header.set_size(0);
            header.set_cksum();
            archive.append(&header, std::io::empty()).unwrap();
        }
    }
    archive.into_inner().unwrap().finish().unwrap()
}

#[test]
fn an_archive_writes_nothing_outside_its_folder() {
    use EntryType::{Block, Fifo, Link, Regular, Symlink};
    let above = tempdir().unwrap();
    write(above.path(), "victim", "mine");
    let victim = above.path().join("victim").display().to_string();
    let cases: Vec<Vec<(&str, EntryType, &str)>> = vec![
        vec![("../victim", Regular, "yours")],
        vec![("a/../../victim", Regular, "yours")],
        vec![(&victim, Regular, "yours")],
        vec![("out", Symlink, ".."), ("out/victim", Regular, "yours")],
        vec![("out", Symlink, &victim), ("out", Regular, "yours")],
        vec![("hard", Link, "../victim")],
        vec![("disk", Block, "")],
        vec![("pipe", Fifo, "")],
    ];
    for (number, entries) in cases.iter().enumerate() {
        let folder = above.path().join(format!("into-{number}"));
        fs::create_dir(&folder).unwrap();
        let refused = unpack(&crafted(entries)[..], &folder);
        assert!(refused.is_err(), "{entries:?}");
        assert_eq!(fs::read_to_string(above.path().join("victim")).unwrap(), "mine", "{entries:?}");
    }
}

#[test]
fn an_archive_that_unpacks_to_too_much_is_refused() {
    let mut header = Header::new_gnu();
    header.set_path("huge").unwrap();
    header.set_size(1 << 40);
    header.set_cksum();
    let mut archive = Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    archive.append(&header, std::io::empty()).unwrap();
    let archive = archive.into_inner().unwrap().finish().unwrap();
    let folder = tempdir().unwrap();
    let refused = unpack(&archive[..], folder.path()).unwrap_err();
    assert!(matches!(refused, UnpackError::TooLarge), "{refused}");
    assert!(files(folder.path()).is_empty());
}

#[test]
fn an_archive_says_which_commit_it_is_of_and_what_was_changed_since() {
    let folder = project();
    let with = |origin: &Origin| {
        let mut bytes = Vec::new();
        pack_with_origin(folder.path(), Some(origin), Limits::default(), &mut bytes).unwrap();
        bytes
    };
    let diff = "--- a/train.py\n+++ b/train.py\n".to_owned();
    let origin = Origin { commit: "0a".repeat(20), dirty: true, diff };
    let bytes = with(&origin);
    assert_eq!(Origin::of_archive(&bytes[..]), Some(origin.clone()));
    let to = tempdir().unwrap();
    unpack(&bytes[..], to.path()).unwrap();
    assert_eq!(fs::read_to_string(to.path().join(".berth/code.diff")).unwrap(), origin.diff);
    assert_eq!(fs::read_to_string(to.path().join("train.py")).unwrap(), "print(1)");
    let clean = Origin { dirty: false, diff: String::new(), ..origin };
    assert_eq!(Origin::of_archive(&with(&clean)[..]), Some(clean.clone()));
    // A folder from `berth code` contains the origin of another submission.
    write(folder.path(), ".berth/commit", "something else");
    assert_eq!(Origin::of_archive(&with(&clean)[..]), Some(clean));
    let (_, plain) = packed(project().path());
    assert_eq!(Origin::of_archive(&plain[..]), None);
    assert_eq!(Origin::of_archive(&b"no archive"[..]), None);
}

#[test]
fn a_long_diff_is_cut_between_two_lines() {
    let line = "+ä line of a diff\n";
    let long = line.repeat((1 << 20) / line.len() + 100);
    let cut_off = cut_diff(long);
    assert!(cut_off.len() < (1 << 20) + 100);
    let rest = cut_off.strip_suffix("# The rest was cut off.\n").unwrap();
    assert!(rest.ends_with(line), "{}", &rest[rest.len() - 40..]);
    assert_eq!(cut_diff(line.to_owned()), line);
}
