use super::*;
use std::os::unix::fs::symlink;
use std::time::{Duration, Instant};

fn volumes() -> (tempfile::TempDir, Volumes) {
    let root = tempfile::tempdir().unwrap();
    let volumes = Volumes::open(Home::open(&root.path().join("home")).unwrap());
    (root, volumes)
}

fn names(volumes: &Volumes) -> Vec<String> {
    let all = volumes.list().unwrap().into_iter();
    all.map(|one| format!("{}/{}", one.team, one.name)).collect()
}

/// Waits for the thread that deletes.
fn until_purged(volumes: &Volumes, team: &str) {
    let removed = volumes.home.team_volumes().join(team).join(REMOVED);
    let deadline = Instant::now() + Duration::from_secs(600);
    while removed.exists() {
        assert!(Instant::now() < deadline, "{} is still there", removed.display());
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn volumes_are_made_once_listed_by_team_and_deleted() {
    let (_root, volumes) = volumes();
    assert_eq!(names(&volumes), [""; 0]);
    for (team, name) in [("nlp", "data"), ("nlp", "data"), ("audio", "data"), ("nlp", "Z.1")] {
        fs::write(volumes.keep(team, name, false).unwrap().join("file"), "mine").unwrap();
    }
    assert_eq!(names(&volumes), ["audio/data", "nlp/Z.1", "nlp/data"]);
    let size = volumes.measure("nlp", "data", 100);
    assert_eq!((size.files, size.entries, size.partial), (1, 1, false));
    assert!(size.bytes > 0);
    assert_eq!(volumes.remove("nlp", "data", &|| true).unwrap(), Removal::Done);
    assert_eq!(volumes.remove("nlp", "data", &|| true).unwrap(), Removal::Absent);
    assert_eq!(names(&volumes), ["audio/data", "nlp/Z.1"]);
    until_purged(&volumes, "nlp");
    assert!(fs::read_dir(volumes.keep("nlp", "data", false).unwrap()).unwrap().next().is_none());
}

#[test]
fn a_volume_that_is_in_use_stays() {
    let (_root, volumes) = volumes();
    let folder = volumes.keep("nlp", "data", false).unwrap();
    assert_eq!(volumes.remove("nlp", "data", &|| false).unwrap(), Removal::InUse);
    assert!(folder.is_dir());
}

#[test]
fn no_name_leads_out_of_the_folder_of_the_team() {
    let (_root, volumes) = volumes();
    let other = volumes.keep("audio", "data", false).unwrap();
    for name in ["", ".", "..", "../audio/data", ".removed", "/etc", &"x".repeat(300)] {
        assert!(matches!(volumes.keep("nlp", name, false), Err(Error::BadName(_))), "{name}");
        assert_eq!(volumes.remove("nlp", name, &|| true).unwrap(), Removal::Absent, "{name}");
    }
    for team in ["", "..", "../jobs", ".removed", "nlp/../audio"] {
        assert!(matches!(volumes.keep(team, "data", false), Err(Error::BadTeam(_))), "{team}");
        assert_eq!(volumes.remove(team, "data", &|| true).unwrap(), Removal::Absent, "{team}");
        assert!(volumes.of_team(team).unwrap().is_empty(), "{team}");
    }
    assert!(other.is_dir());
}

#[test]
fn links_in_a_volume_are_neither_measured_nor_followed_when_it_is_deleted() {
    let (root, volumes) = volumes();
    let outside = root.path().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("large"), vec![b'x'; 1 << 20]).unwrap();
    let folder = volumes.keep("nlp", "data", false).unwrap();
    fs::create_dir(folder.join("deep")).unwrap();
    symlink(&outside, folder.join("folder")).unwrap();
    symlink(&outside, folder.join("deep/folder")).unwrap();
    symlink(outside.join("large"), folder.join("file")).unwrap();
    symlink("/", folder.join("root")).unwrap();
    symlink("..", folder.join("up")).unwrap();
    let size = volumes.measure("nlp", "data", 1_000);
    assert_eq!((size.files, size.entries, size.partial), (5, 6, false));
    assert!(size.bytes < 1 << 20, "{size:?}");
    volumes.remove("nlp", "data", &|| true).unwrap();
    until_purged(&volumes, "nlp");
    assert_eq!(fs::read(outside.join("large")).unwrap().len(), 1 << 20);
}

#[test]
fn a_link_in_the_place_of_a_volume_goes_and_what_it_leads_to_stays() {
    let (root, volumes) = volumes();
    let elsewhere = root.path().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    fs::write(elsewhere.join("file"), "kept").unwrap();
    volumes.keep("nlp", "other", false).unwrap();
    symlink(&elsewhere, volumes.home.volume("nlp", "data")).unwrap();
    assert_eq!(volumes.keep("nlp", "data", false).unwrap(), volumes.home.volume("nlp", "data"));
    assert_eq!(names(&volumes), ["nlp/data", "nlp/other"]);
    assert!(volumes.measure("nlp", "data", 100).partial);
    volumes.remove("nlp", "data", &|| true).unwrap();
    until_purged(&volumes, "nlp");
    assert_eq!(names(&volumes), ["nlp/other"]);
    assert_eq!(fs::read_to_string(elsewhere.join("file")).unwrap(), "kept");
}

/// A folder in a folder and so on, deeper than a path can say.
fn dig(folder: &Path, levels: usize) {
    use rustix::fs::{Mode, OFlags, mkdirat, open, openat};
    let flags = OFlags::RDONLY | OFlags::DIRECTORY;
    let mut at = open(folder, flags, Mode::empty()).unwrap();
    for _ in 0..levels {
        mkdirat(&at, "down", Mode::RWXU).unwrap();
        at = openat(&at, "down", flags, Mode::empty()).unwrap();
    }
}

#[test]
fn a_tree_of_any_depth_is_deleted_and_measured_within_limits() {
    let (_root, volumes) = volumes();
    let folder = volumes.keep("nlp", "data", false).unwrap();
    dig(&folder, 20_000);
    let size = volumes.measure("nlp", "data", 100_000);
    assert_eq!((size.entries, size.partial), (64, true));
    volumes.remove("nlp", "data", &|| true).unwrap();
    until_purged(&volumes, "nlp");
}

#[test]
fn many_files_are_counted_as_far_as_the_limit() {
    let (_root, volumes) = volumes();
    let folder = volumes.keep("nlp", "data", false).unwrap();
    for nth in 0..50 {
        fs::write(folder.join(nth.to_string()), "x").unwrap();
    }
    let size = volumes.measure("nlp", "data", 20);
    assert_eq!((size.files, size.entries, size.partial), (20, 20, true));
    assert!(!volumes.measure("nlp", "data", 50).partial);
}

#[test]
fn what_nobody_may_read_or_write_is_deleted_too() {
    let (_root, volumes) = volumes();
    let folder = volumes.keep("nlp", "data", false).unwrap();
    for (name, mode) in [("closed", 0o000), ("read-only", 0o555)] {
        fs::create_dir_all(folder.join(name).join("below")).unwrap();
        fs::write(folder.join(name).join("below/file"), "x").unwrap();
        for path in [folder.join(name).join("below"), folder.join(name)] {
            fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
        }
    }
    volumes.remove("nlp", "data", &|| true).unwrap();
    until_purged(&volumes, "nlp");
}

#[test]
fn what_a_server_left_half_deleted_the_next_one_deletes() {
    let root = tempfile::tempdir().unwrap();
    let home = Home::open(&root.path().join("home")).unwrap();
    let left = home.team_volumes().join("nlp").join(REMOVED).join("1-2/a/b");
    fs::create_dir_all(&left).unwrap();
    fs::write(left.join("file"), "x").unwrap();
    let next = Volumes::open(home);
    assert_eq!(names(&next), [""; 0]);
    until_purged(&next, "nlp");
}

#[test]
fn a_job_that_starts_while_a_volume_is_deleted_gets_a_new_one() {
    let (_root, volumes) = volumes();
    let folder = volumes.keep("nlp", "data", false).unwrap();
    fs::write(folder.join("old"), "x").unwrap();
    std::thread::scope(|scope| {
        let is_free = || {
            // The other one waits at the gate by now, or comes later.
            scope.spawn(|| {
                assert!(!volumes.keep("nlp", "data", false).unwrap().join("old").exists())
            });
            std::thread::sleep(Duration::from_millis(50));
            true
        };
        assert_eq!(volumes.remove("nlp", "data", &is_free).unwrap(), Removal::Done);
    });
    assert!(folder.is_dir());
}
