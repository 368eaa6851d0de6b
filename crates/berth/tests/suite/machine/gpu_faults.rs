//! GPUs that fail while jobs are on them, played back: declared GPUs tell what a file says.

use super::people::People;
use super::server::until;
use serde_json::{Value, json};
use std::path::PathBuf;

/// Saves when it is asked to end, and exits as if all were well. When it comes back, it says from
/// where.
const TRAINS: &str = r#"
test -e $BERTH_CHECKPOINT_DIR/step && echo "goes on from $(cat $BERTH_CHECKPOINT_DIR/step)"
trap 'echo 7 > $BERTH_CHECKPOINT_DIR/step; exit 0' TERM
echo ready
while :; do sleep 0.1; done
"#;

struct Played {
    people: People,
    file: PathBuf,
    _folder: tempfile::TempDir,
}

impl Played {
    fn start(gpus: &str) -> Played {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("gpus.json");
        std::fs::write(&file, "[]").unwrap();
        let path = file.display().to_string();
        let people = People::start_with(&["--gpus", gpus, "--gpu-recording", &path]);
        Played { people, file, _folder: folder }
    }

    /// What the GPUs tell from now on.
    fn tell(&self, told: &Value) {
        let beside = self.file.with_extension("new");
        std::fs::write(&beside, told.to_string()).unwrap();
        std::fs::rename(beside, &self.file).unwrap();
    }

    fn trains(&self, gpus: &str) -> String {
        let run = TRAINS.trim().replace('\n', "\n  ");
        let file = format!(
            "team: vision\ngpus: {gpus}\ncheckpoint: {{path: ckpt, grace: 20s}}\nrun: |\n  {run}\n"
        );
        self.people.job(&self.people.kim, &file)
    }

    fn gpu(&self, index: usize) -> Value {
        self.people.get(&self.people.kim, "/v1/gpus").json()["items"][index].clone()
    }

    /// The GPUs that a running job holds.
    fn holds(&self, job: &str) -> Vec<usize> {
        let all = self.people.get(&self.people.kim, "/v1/gpus").json();
        let holds = |gpu: &Value| {
            let holders = gpu["holders"].as_array().cloned().unwrap_or_default();
            holders.iter().any(|holder| holder["job"] == job)
        };
        let gpus = all["items"].as_array().unwrap();
        (0..gpus.len()).filter(|index| holds(&gpus[*index])).collect()
    }

    fn log(&self, job: &str) -> String {
        let shown = self.people.server.berth(&["logs", job]);
        String::from_utf8_lossy(&shown.stdout).into_owned()
    }
}

#[test]
fn a_gpu_with_a_fatal_xid_is_taken_out_and_its_job_goes_on_elsewhere_from_its_checkpoint() {
    let played = Played::start("2xH100");
    let job = played.trains("1");
    played.people.until_is(&job, "running");
    until("it holds a GPU", || played.holds(&job).len() == 1);
    // It can save from now on.
    until("it is ready", || played.log(&job).contains("ready"));
    let first = played.holds(&job)[0];
    let other = 1 - first;

    // A program's own error changes nothing.
    let ill =
        |xid: u64| if first == 0 { json!([{ "xid": xid }]) } else { json!([{}, { "xid": xid }]) };
    played.tell(&ill(31));
    std::thread::sleep(std::time::Duration::from_millis(500));
    assert_eq!(played.gpu(first)["healthy"], true);

    played.tell(&ill(79));
    until("it runs on the other GPU", || played.holds(&job) == [other]);
    until("it goes on from what it saved", || played.log(&job).contains("goes on from 7"));
    let gpu = played.gpu(first);
    assert_eq!((&gpu["healthy"], &gpu["holders"]), (&json!(false), &json!([])));
    assert_eq!(gpu["failed"], "XID 79: it has fallen off the bus");
    let rows = played.people.get(&played.people.admin, "/v1/audit?what=gpu_failed").json();
    assert!(rows.to_string().contains(&format!("gpu {first} of box: XID 79")), "{rows}");
    let attempts = played.people.get(&played.people.kim, &format!("/v1/jobs/{job}/attempts"));
    assert!(attempts.body.contains("gpu_error"), "{attempts:?}");

    // Nothing starts on it: the next job waits and hears why.
    let next = played.trains("1");
    let why = || played.people.get(&played.people.kim, &format!("/v1/jobs/{next}/why")).body;
    until("the next one waits", || played.people.server.job(&next)["state"] == "pending");
    assert!(why().contains("GPU"), "{}", why());

    // Only an operator puts it back, and only when it is well.
    let path = format!("/v1/nodes/box/gpus/{first}/resume");
    let people = &played.people;
    assert_eq!(people.ask(&people.kim, "POST", &path, &json!({})).status, 403);
    let refused = people.ask(&people.admin, "POST", &path, &json!({}));
    assert_eq!(refused.status, 409, "{refused:?}");
    assert!(refused.body.contains("is still ill, XID 79"), "{refused:?}");
    played.tell(&json!([]));
    let back = people.admin("POST", &path, &json!({}));
    assert_eq!((&back["healthy"], &back["failed"]), (&json!(true), &Value::Null));
    people.until_is(&next, "running");
    until("it has that GPU", || played.holds(&next) == [first]);
    assert_eq!(people.admin("POST", &path, &json!({}))["healthy"], true);
    let missing = people.ask(&people.admin, "POST", "/v1/nodes/box/gpus/9/resume", &json!({}));
    assert_eq!(missing.status, 404);
}

#[test]
fn a_gpu_that_vanishes_ends_what_is_on_it_and_nothing_is_booked_twice() {
    let played = Played::start("3xH100");
    let jobs: Vec<String> = (0..2).map(|_| played.trains("1")).collect();
    jobs.iter().for_each(|job| played.people.until_is(job, "running"));
    until("both hold a GPU", || jobs.iter().all(|job| played.holds(job).len() == 1));
    let lost = played.holds(&jobs[0])[0];
    let stays = played.holds(&jobs[1]);

    let told: Vec<Value> = (0..3).map(|gpu| json!({ "lost": gpu == lost })).collect();
    played.tell(&json!(told));
    until("the first goes on elsewhere", || {
        let now = played.holds(&jobs[0]);
        now.len() == 1 && now[0] != lost
    });
    assert_eq!(played.holds(&jobs[1]), stays, "the other job was left alone");
    assert_ne!(played.holds(&jobs[0]), stays);
    assert_eq!(played.gpu(lost)["failed"], "XID 79: it has fallen off the bus");
    let shown = played.people.server.berth(&["gpus"]);
    let remarks = String::from_utf8_lossy(&[shown.stdout, shown.stderr].concat()).into_owned();
    let expect = format!("GPU {lost} of box has failed: XID 79");
    assert!(remarks.contains(&expect), "{remarks}");
}

#[test]
fn a_recording_with_a_mistake_keeps_the_server_from_starting_and_says_which() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("gpus.json");
    std::fs::write(&file, r#"[{"powr_watts": 1}]"#).unwrap();
    let done = std::process::Command::new(env!("CARGO_BIN_EXE_berth"))
        .args(["up", "--listen", "127.0.0.1:0", "--gpus", "1xL4", "--gpu-recording"])
        .arg(&file)
        .arg("--home")
        .arg(folder.path().join("home"))
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&done.stderr);
    assert!(!done.status.success() && text.contains("unknown field `powr_watts`"), "{text}");
}
