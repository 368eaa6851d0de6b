//! The real dvc client, against the real program. `make dvc-tools` installs it.

use super::http::Request;
use super::people::People;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

/// The client of the tests.
fn dvc() -> &'static Path {
    static DVC: OnceLock<PathBuf> = OnceLock::new();
    DVC.get_or_init(|| {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let output = Command::new(root.join(".ci/dvc-tools")).output().expect("bash is there");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let printed = String::from_utf8(output.stdout).expect("text");
        let folder = printed.lines().last().expect("it prints a folder");
        PathBuf::from(folder).join("venv/bin/dvc")
    })
}

/// A project of DVC with a folder `corpus` and a remote of team vision.
struct Project<'p> {
    people: &'p People,
    folder: PathBuf,
}

impl Project<'_> {
    fn try_dvc(&self, args: &[&str]) -> Output {
        let (home, site) =
            (self.people.server.work.path(), self.people.server.work.path().join("site"));
        Command::new(dvc())
            .args(args)
            .current_dir(&self.folder)
            .env("DVC_NO_ANALYTICS", "1")
            .env("DVC_SITE_CACHE_DIR", site)
            .env("DVC_GLOBAL_CONFIG_DIR", home.join("dvc-global"))
            .env("DVC_SYSTEM_CONFIG_DIR", home.join("dvc-system"))
            .output()
            .expect("dvc runs")
    }

    fn dvc(&self, args: &[&str]) -> String {
        let ran = self.try_dvc(args);
        let (out, err) =
            (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
        assert!(ran.status.success(), "dvc {args:?}: {out}{err}");
        format!("{out}{err}")
    }

    /// A project whose remote is that of team vision. Written by hand: each command of dvc takes a
    /// second to start.
    fn begin<'p>(people: &'p People, name: &str, remote: &[(&str, &str)]) -> Project<'p> {
        let folder = people.server.work.path().join(name);
        let mut config = String::from(
            "[core]\n    no_scm = True\n    analytics = false\n    check_update = false\n    \
             remote = berth\n['remote \"berth\"']\n",
        );
        let url = format!("{}/v1/dvc/vision", people.server.url);
        for (option, value) in [("url", url.as_str())].iter().chain(remote) {
            config.push_str(&format!("    {option} = {value}\n"));
        }
        write(&folder, ".dvc/config", config.as_bytes());
        Project { people, folder }
    }
}

fn write(folder: &Path, path: &str, bytes: &[u8]) {
    let path = folder.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, bytes).unwrap();
}

#[test]
fn the_dvc_client_pushes_and_a_fresh_clone_pulls_the_same_bytes() {
    let people = People::start("1xL4");
    let basic = |user, password| [("auth", "basic"), ("user", user), ("password", password)];
    let first = Project::begin(&people, "first", &basic("kim", &people.kim));
    for at in 0..12 {
        write(&first.folder, &format!("corpus/part-{at}.txt"), format!("part {at}").as_bytes());
    }
    let large: Vec<u8> = (0..7_000_000u32).map(|at| (at % 251) as u8).collect();
    write(&first.folder, "corpus/deep/large.bin", &large);
    first.dvc(&["add", "corpus", "-q"]);
    let pushed = first.dvc(&["push"]);
    assert!(pushed.contains("14 files pushed"), "{pushed}");

    // Another person elsewhere, with a token in a header.
    let custom = [
        ("auth", "custom"),
        ("custom_auth_header", "x-berth-token"),
        ("password", people.lea.as_str()),
        ("method", "PUT"),
    ];
    let second = Project::begin(&people, "second", &custom);
    fs::copy(first.folder.join("corpus.dvc"), second.folder.join("corpus.dvc")).unwrap();
    second.dvc(&["pull", "-q"]);
    assert_eq!(fs::read(second.folder.join("corpus/deep/large.bin")).unwrap(), large);
    assert_eq!(fs::read(second.folder.join("corpus/part-7.txt")).unwrap(), b"part 7");

    // A changed file: only it and the list go.
    write(&second.folder, "corpus/part-7.txt", b"part 7, changed");
    second.dvc(&["add", "corpus", "-q"]);
    let pushed = second.dvc(&["push"]);
    assert!(pushed.contains("2 files pushed"), "{pushed}");
    let status = second.dvc(&["status", "-c"]);
    assert!(status.contains("in sync"), "{status}");

    // Both are versions, and Berth's own command makes the same hash of the same files.
    let name = |project: &Project<'_>, path: &str, version: &str| -> Value {
        let path = project.folder.join(path).display().to_string();
        let args = ["data", "push", &path, version, "--team", "vision", "-o", "json"];
        serde_json::from_str(&people.server.run_ok(&args)).unwrap()
    };
    let one = name(&first, "corpus.dvc", "corpus@v1");
    let two = name(&second, "corpus.dvc", "corpus@v2");
    assert_eq!((&one["files"], &two["parent"]), (&json!(13), &json!(1)));
    let same = name(&second, "corpus", "corpus@v3");
    assert_eq!(same["hash"], two["hash"], "{same}");
    let diff = people.server.run_ok(&[
        "data",
        "diff",
        "corpus@v1",
        "corpus@v2",
        "--team",
        "vision",
        "-o",
        "json",
    ]);
    let diff: Value = serde_json::from_str(&diff).unwrap();
    assert_eq!(diff["changed"]["paths"], json!(["part-7.txt"]));

    // Nobody without a right pushes, and nothing says what is there.
    let mia = people.join("mia", "audio", "researcher");
    let third = Project::begin(&people, "third", &basic("mia", &mia));
    fs::copy(first.folder.join("corpus.dvc"), third.folder.join("corpus.dvc")).unwrap();
    assert!(!third.try_dvc(&["pull", "-q"]).status.success());

    // What the cache has wrongly is refused, and not kept.
    write(&first.folder, "late", b"late");
    first.dvc(&["add", "late", "-q"]);
    let late = "f2c67381db28fa11c59fe7a6df0f2587";
    let cached = first.folder.join(".dvc/cache/files/md5/f2").join(&late[2..]);
    fs::remove_file(&cached).unwrap();
    fs::write(&cached, b"spoiled").unwrap();
    let _ = first.try_dvc(&["push", "-q"]);
    let path = format!("/v1/dvc/vision/files/md5/f2/{}", &late[2..]);
    assert_eq!(people.get(&people.kim, &path).status, 404);
    let sent = Request::new("POST", &path).token(Some(&people.kim));
    let sent = sent.body("application/octet-stream", "spoiled").send(&people.server.url);
    assert_eq!(sent.status, 400, "{sent:?}");
}
