//! A database that is lost comes back from a backup.

use super::server::Server;

fn remove_database(server: &Server) {
    for entry in std::fs::read_dir(server.home.path()).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if name.starts_with("berth.db") {
            std::fs::remove_file(path).unwrap();
        }
    }
}

#[test]
fn what_was_backed_up_is_there_again_after_the_database_is_lost() {
    let mut server = Server::start(&["--gpus", "1xL4"]);
    server.run_ok(&["run", "--name", "kept", "-g", "1", "--", "true"]);
    let cost = server.json(&["cost", "--by", "job"]);
    let backup = server.run_ok(&["backup"]).trim().to_owned();
    server.run_ok(&["run", "--name", "later", "--", "true"]);

    let home = server.home.path().display().to_string();
    let restore = ["restore", backup.as_str(), "--home", home.as_str()];
    server.kill();
    let refused = server.berth(&restore);
    assert!(!refused.status.success(), "a database with something in it is not written over");

    remove_database(&server);
    let restored = server.berth(&restore);
    assert!(restored.status.success(), "{restored:?}");
    server.start_again();

    let jobs = server.json(&["ps", "--all"]);
    let names: Vec<&str> =
        jobs["jobs"].as_array().unwrap().iter().map(|job| job["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["kept"], "{jobs}");
    assert_eq!(server.json(&["cost", "--by", "job"])["rows"], cost["rows"]);
    assert!(server.berth(&["audit", "verify"]).status.success());
    let audit = server.json(&["audit", "list"]);
    let what = |row: &serde_json::Value| row["what"].as_str().unwrap_or_default().to_owned();
    let restores = audit["rows"].as_array().unwrap().iter().filter(|row| what(row) == "restore");
    assert_eq!(restores.count(), 1, "{audit}");
    server.run_ok(&["run", "--name", "next", "-g", "1", "--", "true"]);
    let next = server.json(&["ps", "--all", "next"]);
    assert_eq!(next["jobs"][0]["id"], "3", "the number of what came after the backup is used up");
}
