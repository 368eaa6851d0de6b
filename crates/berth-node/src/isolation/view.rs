//! What a task sees.

use super::{Confine, Room, Shown, devices};
use berth_sandbox::{Mount, Sandbox, Source, other_names};
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Folders of the system. Of those that are links, as `/bin` is on most machines, the link.
const SYSTEM: [&str; 15] = [
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/etc",
    "/opt",
    "/nix",
    "/gnu",
    "/sys",
    // Where names are resolved with systemd, and where CUDA talks to the driver's daemon.
    "/run/systemd/resolve",
    "/run/nvidia-persistenced",
    "/var/cache/fontconfig",
];

/// Switches of the kernel. A task may run as root, which may turn them even without its rights.
const SWITCHES: [&str; 6] =
    ["/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus", "/proc/fs", "/proc/scsi"];

/// What of the system holds secrets, or acts for whoever may open it. A task may run as its owner.
const SECRETS: [&str; 8] = [
    "/etc/shadow",
    "/etc/shadow-",
    "/etc/gshadow",
    "/etc/gshadow-",
    "/etc/sudoers",
    "/etc/ssl/private",
    "/etc/krb5.keytab",
    "/nix/var/nix/daemon-socket",
];

/// Whether a path lies in what every task sees.
pub fn is_of_system(path: &Path) -> bool {
    SYSTEM.iter().any(|system| path.starts_with(system))
}

/// The folders that a task has of its own, beside its room.
pub(crate) struct Own {
    pub job: PathBuf,
    pub notices: PathBuf,
    /// This program, which jobs use to talk to the server.
    pub berth: PathBuf,
}

/// Where jobs find this program. It comes last in `PATH`.
pub(crate) const PROGRAMS: &str = "/run/berth/bin";

/// What must be hidden and is not there.
#[derive(Debug)]
pub(crate) struct NotHidden {
    pub path: PathBuf,
    pub source: io::Error,
}

/// An error where something that must be hidden is not where it should be: somebody may have moved
/// it to where nothing covers it.
pub(crate) fn sandbox(own: &Own, room: &Room, confine: &Confine) -> Result<Sandbox, NotHidden> {
    let mut mounts: Vec<Mount> = SYSTEM.iter().filter_map(|path| system(path)).collect();
    mounts.push(Mount::new("/proc", Source::Processes));
    mounts.extend(SWITCHES.iter().filter_map(|path| system(path)));
    mounts.extend(devices::mounts(&confine.devices));
    for at in ["/tmp", "/var/tmp"] {
        mounts.push(Mount::new(at, Source::write(&room.tmp())));
    }
    for shown in &confine.shown {
        let (path, write) = (shown.source.clone(), shown.write);
        let source = match shown.by.clone() {
            None => Source::Folder { path, write },
            Some(by) => Source::Named { path, write, by },
        };
        mounts.push(Mount::new(&shown.at, source));
    }
    for path in confine.hidden.iter().chain(&secrets()) {
        mounts.extend(hide(path, &confine.shown)?);
    }
    mounts.push(Mount::new(&own.job, Source::write(&own.job)));
    mounts.push(Mount::new(&own.notices, Source::read(&own.notices)));
    let program = Path::new(PROGRAMS).join("berth");
    mounts.push(Mount::new(program, Source::System { path: own.berth.clone() }));
    mounts.extend(names(confine));
    let account = confine.account.clone();
    Ok(Sandbox { scratch: room.scratch(), mounts, network: confine.network, account })
}

fn system(path: &str) -> Option<Mount> {
    let found = fs::symlink_metadata(path).ok()?;
    let source = match found.is_symlink() {
        true => Source::Link { to: fs::read_link(path).ok()? },
        false => Source::System { path: PathBuf::from(path) },
    };
    Some(Mount::new(path, source))
}

fn secrets() -> Vec<PathBuf> {
    let is_key = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.starts_with("ssh_host_") && !name.ends_with(".pub")
    };
    let keys = fs::read_dir("/etc/ssh").into_iter().flatten().flatten().map(|entry| entry.path());
    let system = SECRETS.iter().map(PathBuf::from).filter(|path| path.exists());
    system.chain(keys.filter(is_key)).collect()
}

/// Covers something wherever the task would see it, or could make something up in its place. What
/// is shown by its own name, or lies below something hidden, is put on top of that.
fn hide(path: &Path, shown: &[Shown]) -> Result<Vec<Mount>, NotHidden> {
    let fail = |source| NotHidden { path: path.to_owned(), source };
    // No mount goes through a link.
    let path = path.canonicalize().map_err(fail)?;
    let source = match fs::metadata(&path).map_err(fail)?.is_dir() {
        true => Source::Nothing,
        false => Source::Text { text: String::new() },
    };
    let mut names = other_names(&path);
    names.push(path.clone());
    let places = places(&names, shown);
    Ok(places.into_iter().map(|at| Mount::new(at, source.clone())).collect())
}

/// Where a task would see something that the machine has by these names. In `/tmp`, which it has for
/// itself, it could make it up.
fn places(names: &[PathBuf], shown: &[Shown]) -> BTreeSet<PathBuf> {
    let is_in_tmp = |name: &Path| ["/tmp", "/var/tmp"].iter().any(|tmp| name.starts_with(tmp));
    let as_they_are = names.iter().filter(|name| is_in_tmp(name) || is_of_system(name)).cloned();
    let elsewhere = names.iter().flat_map(|name| {
        shown.iter().filter_map(move |shown| {
            let rest = name.strip_prefix(&shown.source).ok()?;
            Some(if rest.as_os_str().is_empty() { shown.at.clone() } else { shown.at.join(rest) })
        })
    });
    as_they_are.chain(elsewhere).collect()
}

/// The names of the account and its groups: programs ask for them, and a made-up one has none.
fn names(confine: &Confine) -> Vec<Mount> {
    let Some(account) = &confine.account else { return Vec::new() };
    let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let (uid, gid) = (account.uid.to_string(), account.gid.to_string());
    let is_known = users.lines().any(|line| line.split(':').nth(2) == Some(uid.as_str()));
    if is_known {
        return Vec::new();
    }
    let (user, home) = (&confine.user, confine.home.display());
    // A name with a colon or a line break would make up other accounts.
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '@');
    let is_taken = |text: &str| text.lines().any(|line| line.split(':').next() == Some(user));
    let is_good = !user.is_empty() && user.chars().all(is_plain) && !is_taken(&users);
    let name = if is_good { user.clone() } else { format!("u{uid}") };
    let groups = fs::read_to_string("/etc/group").unwrap_or_default();
    let group = if is_taken(&groups) { format!("g{gid}") } else { name.clone() };
    let users = format!("{users}{name}:x:{uid}:{gid}::{home}:/bin/sh\n");
    let groups = format!("{groups}{group}:x:{gid}:\n");
    vec![
        Mount::new("/etc/passwd", Source::Text { text: users }),
        Mount::new("/etc/group", Source::Text { text: groups }),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use berth_sandbox::Account;

    fn confine() -> Confine {
        let account = Some(Account { uid: 1_900_000_001, gid: 1_900_000_001, groups: vec![] });
        Confine { account, user: "ana".to_owned(), home: "/h".into(), ..Confine::default() }
    }

    #[test]
    fn what_is_hidden_is_covered_only_where_it_would_be_seen() {
        let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let secret = dir.path().join("secret");
        fs::create_dir(&secret).unwrap();
        let empty = |at: &Path| Mount::new(at, Source::Nothing);
        // A task has a /tmp of its own, in which it could make something up.
        let in_tmp = secret.starts_with("/tmp") || secret.starts_with("/var/tmp");
        let own: Vec<Mount> = in_tmp.then(|| empty(&secret)).into_iter().collect();
        assert_eq!(hide(&secret, &[]).unwrap(), own);
        let shown = [Shown::in_place(dir.path(), true)];
        assert_eq!(hide(&secret, &shown).unwrap(), [empty(&secret)]);
        let missing = hide(&dir.path().join("missing"), &shown).unwrap_err();
        assert_eq!(missing.path, dir.path().join("missing"));
        let elsewhere = |source: &Path, place: &str| {
            let shown = Shown { at: "/data".into(), ..Shown::in_place(source, true) };
            let hidden = hide(&secret, &[shown]).unwrap();
            let expected = [&[empty(Path::new(place))], own.as_slice()].concat();
            assert_eq!(hidden, expected, "{place}");
        };
        elsewhere(dir.path(), "/data/secret");
        elsewhere(&secret, "/data");
    }

    #[test]
    fn what_is_hidden_is_covered_by_every_name_that_a_task_sees() {
        let names = ["/srv/berth", "/opt/alias/berth", "/mnt/berth", "/tmp/berth"];
        let names = names.map(PathBuf::from);
        let shown = [Shown { at: "/data".into(), ..Shown::in_place(Path::new("/mnt"), true) }];
        let expected = ["/data/berth", "/opt/alias/berth", "/tmp/berth"].map(PathBuf::from);
        assert_eq!(places(&names, &shown), BTreeSet::from(expected));
    }

    #[test]
    fn a_user_name_cannot_add_lines_to_the_list_of_accounts() {
        for (user, expect) in [
            ("ana", "\nana:x:"),
            ("a:0:0\nroot2", "\nu1900000001:x:"),
            ("root", "\nu1900000001:x:"),
        ] {
            let confine = Confine { user: user.to_owned(), ..confine() };
            let mounts = names(&confine);
            let Source::Text { text } = &mounts[0].source else { panic!("no text") };
            assert!(text.contains(expect), "{user}: {text}");
            assert_eq!(text.lines().filter(|line| line.contains("1900000001")).count(), 1);
        }
    }
}
