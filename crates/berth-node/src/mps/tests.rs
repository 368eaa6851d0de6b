use super::*;
use std::process::{Child, Command};

/// Daemons that are processes of this test, and do what a daemon does as far as it matters here.
#[derive(Default)]
struct Fake {
    daemons: Mutex<BTreeMap<PathBuf, Child>>,
    started: Mutex<Vec<String>>,
    /// A job keeps the socket of the daemon busy.
    is_busy: Mutex<bool>,
}

impl Fake {
    fn pid(&self, folder: &Path) -> i32 {
        i32::try_from(self.daemons.lock().unwrap()[folder].id()).unwrap()
    }

    fn kill(&self, folder: &Path) {
        let mut child = self.daemons.lock().unwrap().remove(folder).unwrap();
        // Its server with it, as a daemon's without clients.
        process::children(child.id().cast_signed())
            .iter()
            .for_each(|server| server.signal(Signal::KILL));
        child.kill().unwrap();
        child.wait().unwrap();
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        let folders: Vec<PathBuf> = self.daemons.lock().unwrap().keys().cloned().collect();
        folders.iter().for_each(|folder| self.kill(folder));
    }
}

impl MpsControl for Fake {
    fn exists(&self) -> bool {
        true
    }

    fn start(&self, folder: &Path, uuid: &str) -> io::Result<()> {
        assert!(fs::read_dir(pipe(folder))?.next().is_none(), "an old pipe is in the way");
        fs::write(pipe(folder).join("control"), "")?;
        let child = Command::new("sh").args(["-c", "sleep 600 & wait; exec sleep 600"]).spawn()?;
        fs::write(pid_file(folder), child.id().to_string())?;
        self.started.lock().unwrap().push(uuid.to_owned());
        self.daemons.lock().unwrap().insert(folder.to_owned(), child);
        Ok(())
    }

    fn tell(&self, folder: &Path, command: &str) -> io::Result<String> {
        if *self.is_busy.lock().unwrap() || !self.daemons.lock().unwrap().contains_key(folder) {
            return Err(io::Error::other("ended with 1"));
        }
        if command == "quit" {
            self.kill(folder);
        }
        Ok(String::new())
    }

    fn daemon(&self, folder: &Path) -> Option<i32> {
        fs::read_to_string(pid_file(folder)).ok()?.parse().ok()
    }
}

/// Where a daemon says its number, and a job may write another one.
fn pid_file(folder: &Path) -> PathBuf {
    pipe(folder).join("nvidia-cuda-mps-control.pid")
}

fn bench() -> (tempfile::TempDir, Arc<Fake>, Mps) {
    let folder = tempfile::tempdir().unwrap();
    let fake = Arc::new(Fake::default());
    let mps = open(folder.path(), &fake);
    (folder, fake, mps)
}

fn open(folder: &Path, fake: &Arc<Fake>) -> Mps {
    Mps { timeout: Duration::from_millis(200), ..Mps::new(folder, fake.clone()) }
}

/// Waits until the daemon has its server.
fn server_of(fake: &Fake, mps: &Mps, gpu: u32) -> Process {
    let pid = fake.pid(&mps.of(gpu));
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        if let Some(server) = process::children(pid).first() {
            return *server;
        }
        assert!(Instant::now() < deadline, "it starts a server");
        std::thread::sleep(PAUSE);
    }
}

fn started(fake: &Fake) -> usize {
    fake.started.lock().unwrap().len()
}

#[test]
fn a_gpu_has_one_daemon_for_all_who_share_it_until_nobody_does() {
    let (_folder, fake, mps) = bench();
    let pipe = mps.provide(3, "GPU-a").unwrap();
    assert_eq!(mps.provide(3, "GPU-a").unwrap(), pipe);
    assert_eq!(*fake.started.lock().unwrap(), ["GPU-a"]);
    assert_eq!(mps.gpus(), BTreeSet::from([3]));
    mps.provide(1, "GPU-b").unwrap();
    assert!(mps.stop_unused(&BTreeSet::from([3])).is_empty());
    assert_eq!(mps.gpus(), BTreeSet::from([3]));
    mps.stop(3).unwrap();
    mps.stop(3).unwrap();
    assert!(mps.gpus().is_empty() && fake.daemons.lock().unwrap().is_empty());
    assert_eq!(mps.died(), BTreeSet::new());
}

#[test]
fn a_daemon_that_died_is_replaced_and_its_end_is_told_all_the_same() {
    let (_folder, fake, mps) = bench();
    mps.provide(0, "GPU-a").unwrap();
    fake.kill(&mps.of(0));
    mps.provide(0, "GPU-a").unwrap();
    assert_eq!(started(&fake), 2);
    assert_eq!((mps.died(), mps.died()), (BTreeSet::from([0]), BTreeSet::new()));
}

#[test]
fn a_new_daemon_that_says_nothing_is_ended_and_told() {
    let (_folder, fake, mps) = bench();
    *fake.is_busy.lock().unwrap() = true;
    let error = mps.provide(0, "GPU-a").unwrap_err();
    assert_eq!(error.to_string(), "the MPS daemon of GPU 0 does not answer");
    let daemon = Process::of(fake.pid(&mps.of(0))).unwrap();
    assert!(!daemon.is_alive() && mps.gpus().is_empty());
}

#[test]
fn a_job_that_keeps_the_daemon_busy_takes_it_from_nobody_and_leaves_none_behind() {
    let (_folder, fake, mps) = bench();
    let pipe = mps.provide(0, "GPU-a").unwrap();
    let (daemon, server) = (Process::of(fake.pid(&mps.of(0))).unwrap(), server_of(&fake, &mps, 0));
    *fake.is_busy.lock().unwrap() = true;
    assert_eq!(mps.provide(0, "GPU-a").unwrap(), pipe);
    assert!(pipe.join("control").exists() && daemon.is_alive());
    assert_eq!((started(&fake), mps.died()), (1, BTreeSet::new()));
    mps.stop(0).unwrap();
    assert!(!daemon.is_alive() && !server.is_alive() && mps.gpus().is_empty());
}

#[test]
fn what_a_job_writes_into_the_folder_is_believed_by_nobody() {
    let (_folder, fake, mps) = bench();
    mps.provide(0, "GPU-a").unwrap();
    let daemon = Process::of(fake.pid(&mps.of(0))).unwrap();
    let mut other = Command::new("sleep").arg("600").spawn().unwrap();
    let file = pid_file(&mps.of(0));
    fs::write(&file, other.id().to_string()).unwrap();
    assert_eq!(mps.died(), BTreeSet::new());
    fs::write(&file, "4194303").unwrap();
    assert_eq!(mps.died(), BTreeSet::new());
    mps.provide(0, "GPU-a").unwrap();
    assert_eq!(started(&fake), 1, "it lives, whatever the file says");
    fs::write(&file, other.id().to_string()).unwrap();
    mps.stop(0).unwrap();
    assert_eq!((daemon.is_alive(), other.try_wait().unwrap()), (false, None));
    other.kill().unwrap();
    other.wait().unwrap();
}

#[test]
fn a_daemon_without_its_socket_is_replaced_and_those_who_had_it_are_told() {
    let (_folder, fake, mps) = bench();
    let pipe = mps.provide(0, "GPU-a").unwrap();
    let (first, server) = (Process::of(fake.pid(&mps.of(0))).unwrap(), server_of(&fake, &mps, 0));
    assert_eq!(mps.died(), BTreeSet::new());
    fs::remove_file(pipe.join("control")).unwrap();
    // The test loses hold of it as the machine does; it is ended with the next.
    let mut lost = fake.daemons.lock().unwrap().remove(&mps.of(0)).unwrap();
    assert_eq!(mps.provide(0, "GPU-a").unwrap(), pipe);
    assert!(pipe.join("control").exists());
    assert_eq!((started(&fake), mps.died()), (2, BTreeSet::from([0])));
    assert!(first.is_alive() && server.is_alive(), "tasks that had reached it go on");
    let reap = std::thread::spawn(move || lost.wait());
    mps.stop(0).unwrap();
    reap.join().unwrap().unwrap();
    assert!(!first.is_alive() && !server.is_alive() && mps.gpus().is_empty());
}

#[test]
fn a_server_that_dies_is_noticed_once_and_one_that_was_stopped_never() {
    let (_folder, fake, mps) = bench();
    mps.provide(0, "GPU-a").unwrap();
    let server = server_of(&fake, &mps, 0);
    assert_eq!(mps.died(), BTreeSet::new());
    server.signal(Signal::KILL);
    while server.is_alive() {
        std::thread::sleep(PAUSE);
    }
    assert_eq!((mps.died(), mps.died()), (BTreeSet::from([0]), BTreeSet::new()));
    mps.stop(0).unwrap();
    assert_eq!(mps.died(), BTreeSet::new());
}

#[test]
fn another_server_of_berth_knows_the_daemons_and_what_became_of_them() {
    let (folder, fake, mps) = bench();
    mps.provide(0, "GPU-a").unwrap();
    mps.provide(1, "GPU-b").unwrap();
    drop(mps);
    fake.kill(&folder.path().join("mps/gpu-1"));
    let mps = open(folder.path(), &fake);
    mps.provide(0, "GPU-a").unwrap();
    assert_eq!(started(&fake), 2);
    assert_eq!(mps.died(), BTreeSet::from([1]));
    drop(mps);
    // An earlier version took no note.
    fs::remove_file(folder.path().join("mps.json")).unwrap();
    let mps = open(folder.path(), &fake);
    mps.provide(0, "GPU-a").unwrap();
    assert_eq!(started(&fake), 2);
    assert!(mps.stop_unused(&BTreeSet::new()).is_empty());
    assert!(fake.daemons.lock().unwrap().is_empty() && mps.gpus().is_empty());
}

#[test]
fn after_another_start_of_the_machine_a_note_names_no_process() {
    let (folder, fake, mps) = bench();
    mps.provide(0, "GPU-a").unwrap();
    let pid = fake.pid(&mps.of(0));
    drop(mps);
    let note = folder.path().join("mps.json");
    let text = fs::read_to_string(&note).unwrap();
    fs::write(&note, text.replace(&process::boot_id(), "another")).unwrap();
    // The folder is gone with the daemon, and the process is somebody else's.
    fs::remove_dir_all(folder.path().join("mps")).unwrap();
    let mps = open(folder.path(), &fake);
    assert!(mps.gpus().is_empty());
    assert!(mps.stop_unused(&BTreeSet::new()).is_empty());
    assert!(Process::of(pid).unwrap().is_alive());
}
