//! The container image: what engines read of it fits together, and the program runs by what is in
//! it alone.

use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

const BUILD: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/image/build");

fn run_ok(program: &Path, args: &[&str]) -> String {
    let output = Command::new(program).args(args).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    assert!(output.status.success(), "{args:?}: {text}{}", String::from_utf8_lossy(&output.stderr));
    text
}

fn build(archive: &Path) -> String {
    let program = env!("CARGO_BIN_EXE_berth");
    run_ok(Path::new(BUILD), &[program, "berth:1.2.3", archive.to_str().unwrap()])
}

fn unpack(archive: &Path, folder: &Path) {
    fs::create_dir(folder).unwrap();
    let (archive, folder) = (archive.to_str().unwrap(), folder.to_str().unwrap());
    run_ok(Path::new("tar"), &["--extract", "--file", archive, "--directory", folder]);
}

fn json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// The blob that a description names, if it has the digest and the size that are told of it.
fn blob(image: &Path, described: &Value) -> PathBuf {
    let digest = described["digest"].as_str().unwrap().strip_prefix("sha256:").unwrap();
    let path = image.join("blobs/sha256").join(digest);
    let found = run_ok(Path::new("sha256sum"), &[path.to_str().unwrap()]);
    assert!(found.starts_with(digest), "{found}");
    assert_eq!(described["size"], fs::metadata(&path).unwrap().len());
    path
}

/// What starts programs that are linked to libraries, in the image as on this machine.
fn loader(root: &Path) -> PathBuf {
    let folders = ["lib64", "lib"].map(|folder| root.join(folder));
    let files = folders.iter().filter_map(|folder| fs::read_dir(folder).ok()).flatten();
    let mut files = files.map(|file| file.unwrap().path());
    let is_it = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().starts_with("ld-");
    files.find(is_it).expect("the loader is in the image")
}

#[test]
fn an_image_has_all_that_its_program_needs_and_is_the_same_each_time() {
    let folder = TempDir::new().unwrap();
    let at = |name: &str| folder.path().join(name);
    let said = build(&at("berth.tar"));
    unpack(&at("berth.tar"), &at("image"));
    let image = at("image");

    let manifest = blob(&image, &json(&image.join("index.json"))["manifests"][0]);
    assert!(said.contains(manifest.file_name().unwrap().to_str().unwrap()), "{said}");
    let manifest = json(&manifest);
    let layer = blob(&image, &manifest["layers"][0]);
    let config = json(&blob(&image, &manifest["config"]));
    assert_eq!(config["rootfs"]["diff_ids"][0], manifest["layers"][0]["digest"]);
    assert_eq!(config["config"]["User"], "10117:10117", "as the chart runs it");
    let older = &json(&image.join("manifest.json"))[0];
    assert_eq!(older["RepoTags"][0], "berth:1.2.3");
    for path in [&older["Config"], &older["Layers"][0]] {
        assert!(image.join(path.as_str().unwrap()).exists(), "{path}");
    }

    unpack(&layer, &at("root"));
    let entry = config["config"]["Entrypoint"][0].as_str().unwrap();
    let program = at("root").join(entry.trim_start_matches('/'));
    let loader = loader(&at("root"));
    // Libraries of this machine are found at the same paths, so those of the image are named.
    let listed = run_ok(Path::new("ldd"), &[env!("CARGO_BIN_EXE_berth")]);
    let needed = listed.lines().filter_map(|line| line.split("=> /").nth(1)?.split(' ').next());
    let libraries: Vec<&str> = needed.collect();
    assert!(!libraries.is_empty(), "{listed}");
    let mut folders = Vec::new();
    for library in libraries {
        let library = at("root").join(library);
        assert!(library.exists(), "{} is not in the image", library.display());
        folders.push(library.parent().unwrap().to_str().unwrap().to_owned());
    }
    let folders = folders.join(":");
    let words = ["--inhibit-cache", "--library-path", &folders, program.to_str().unwrap()];
    let version = run_ok(&loader, &[&words[..], &["--version"]].concat());
    assert_eq!(version, format!("berth {}", env!("CARGO_PKG_VERSION")));

    assert_eq!(build(&at("again.tar")).replace("again", "berth"), said);
    assert!(fs::read(at("again.tar")).unwrap() == fs::read(at("berth.tar")).unwrap());
}
