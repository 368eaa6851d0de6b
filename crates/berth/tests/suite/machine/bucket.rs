//! Artifacts and data in a bucket of a real S3 server. `make test-long` runs it.

use super::http::Request;
use super::server::{Server, until};
use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

/// An S3 server with an empty bucket `models`.
struct Bucket {
    folder: TempDir,
    child: Child,
    url: String,
}

impl Drop for Bucket {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Bucket {
    fn start() -> Bucket {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let built = Command::new(root.join(".ci/s3-tools")).output().expect("bash is there");
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        let printed = String::from_utf8(built.stdout).expect("text");
        let program =
            PathBuf::from(printed.lines().last().expect("a folder")).join("bin/versitygw");
        let folder = TempDir::with_prefix("berth-s3-").unwrap();
        fs::create_dir_all(folder.path().join("data/models")).unwrap();
        fs::create_dir(folder.path().join("iam")).unwrap();
        let keys = "aws_access_key_id = someone\naws_secret_access_key = something\n";
        fs::write(folder.path().join("keys"), keys).unwrap();
        let free = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
        let address = free.local_addr().expect("it is bound").to_string();
        drop(free);
        let child = Command::new(program)
            .args(["--access", "someone", "--secret", "something", "--port", &address])
            .args(["--iam-dir", &folder.path().join("iam").display().to_string(), "posix"])
            .arg(folder.path().join("data"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the S3 server starts");
        until("the S3 server listens", || TcpStream::connect(&address).is_ok());
        Bucket { folder, child, url: format!("http://{address}") }
    }

    fn objects(&self) -> Vec<PathBuf> {
        let mut left = vec![self.folder.path().join("data/models/berth")];
        let mut found = Vec::new();
        while let Some(folder) = left.pop() {
            for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
                match entry.path() {
                    path if path.is_dir() => left.push(path),
                    path => found.push(path),
                }
            }
        }
        found
    }
}

#[test]
#[ignore = "it builds an S3 server; make test-long runs it"]
fn a_bucket_keeps_artifacts_and_data_and_jobs_get_copies() {
    let bucket = Bucket::start();
    let keys = bucket.folder.path().join("keys").display().to_string();
    let server = Server::start(&[
        "--gpus",
        "1xL4",
        "--blobs",
        "s3://models/berth",
        "--blobs-endpoint",
        &bucket.url,
        "--blobs-keys",
        &keys,
        "--keep-unnamed",
        "0s",
    ]);
    let token = server.token();
    let path =
        |name: &str| format!("/api/2.0/mlflow-artifacts/artifacts/default/1/run/artifacts/{name}");
    let ask = |method: &str, name: &str, body: &str| {
        let request = Request::new(method, path(name)).token(Some(&token));
        request.body("application/octet-stream", body).send(&server.url)
    };
    // Larger than one part of an upload.
    let large = "0123456789abcdef".repeat(1_200_000);
    for (name, body) in [("small", "small"), ("large", large.as_str()), ("again", &large)] {
        let kept = ask("PUT", name, body);
        assert_eq!(kept.status, 200, "{}", kept.body);
    }
    assert_eq!(bucket.objects().len(), 2, "the same bytes are kept once");
    assert!(ask("GET", "large", "").body == large);
    let mut part = Request::new("GET", path("large")).token(Some(&token));
    part.headers.push(("range", "bytes=16000000-16000003".to_owned()));
    assert_eq!(part.send(&server.url).body, "0123");
    for name in ["large", "again"] {
        assert_eq!(ask("DELETE", name, "").status, 200);
    }
    until("the large one is removed from the bucket", || bucket.objects().len() == 1);

    let folder = server.work.path();
    fs::create_dir(folder.join("corpus")).unwrap();
    fs::write(folder.join("corpus/a"), "alpha").unwrap();
    server.run_ok(&["data", "push", "corpus", "c4@v1"]);
    fs::write(folder.join("job.yaml"), "data: {/data: 'dvc:c4@v1'}\nrun: cat /data/a\n").unwrap();
    for _ in 0..2 {
        let ran = server.run_ok(&["run", "-y", "-f", "job.yaml"]);
        assert!(ran.contains("alpha"), "{ran}");
    }
    let before = bucket.objects().len();
    for name in ["first", "second"] {
        let args = ["run", "-y", "--name", name, "--code", "corpus", "--", "cat", "a"];
        let ran = server.run_ok(&args);
        assert!(ran.contains("alpha"), "{ran}");
    }
    assert!(bucket.objects().len() > before, "the snapshot of the code is in the bucket");
    server.run_ok(&["code", "first", "back"]);
    assert_eq!(fs::read_to_string(folder.join("back/a")).unwrap(), "alpha");
    let metrics = Request::new("GET", "/metrics").token(Some(&token)).send(&server.url).body;
    for line in ["berth_data_copied_bytes_total 5", "berth_data_found_total 1"] {
        assert!(metrics.contains(line), "{line}: {metrics}");
    }
}
