//! The energy of jobs in the bill, from GPUs whose counters are played back.

use super::people::People;
use super::server::until;
use serde_json::Value;

fn start(told: &str, flags: &[&str]) -> (People, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("gpus.json");
    std::fs::write(&file, told).unwrap();
    let path = file.display().to_string();
    let recording = ["--gpus", "2xH100", "--gpu-recording", &path];
    (People::start_with(&[&recording, flags].concat()), folder)
}

fn bill(people: &People, job: &str) -> Value {
    let report = people.get(&people.kim, "/v1/cost?by=job").json();
    let rows = report["rows"].as_array().cloned().unwrap_or_default();
    rows.into_iter().find(|row| row["job"] == job).unwrap_or(Value::Null)
}

#[test]
fn the_bill_has_the_energy_of_each_job_and_the_carbon_that_it_stands_for() {
    let told = r#"[{"power_watts": 500}, {"power_watts": 500}]"#;
    let (people, _folder) = start(told, &["--carbon-intensity", "400"]);
    let seconds = |gpus: u32, time: u32| {
        let file = format!("team: vision\ngpus: {gpus}\nrun: sleep {time}\n");
        people.job(&people.kim, &file)
    };
    let jobs = [seconds(2, 2), seconds(1, 1)];
    for (job, at_least) in [(&jobs[0], 2_000_000), (&jobs[1], 500_000)] {
        people.until_is(job, "done");
        until("its energy is billed", || bill(&people, job)["energy_mj"].is_i64());
        let row = bill(&people, job);
        let energy = row["energy_mj"].as_i64().unwrap();
        let held = row["gpu_ms"].as_i64().unwrap();
        // It slept so long with 500 W a GPU, and was seen to end soon after.
        assert!(energy >= at_least, "{row}");
        assert!(energy <= (held + 10_000) * 500, "{row}");
        assert_eq!(row["carbon_mg"].as_i64(), Some(energy * 400 / 3_600_000), "{row}");
    }
    let shown = people.server.run_ok(&["cost", "--by", "job"]);
    assert!(shown.contains("ENERGY") && shown.contains("CO2"), "{shown}");
}

#[test]
fn a_bill_without_counters_says_nothing_of_energy() {
    let (people, _folder) = start("[{}]", &[]);
    let job = people.job(&people.kim, "team: vision\ngpus: 1\nrun: sleep 1\n");
    people.until_is(&job, "done");
    until("it is billed", || bill(&people, &job)["gpu_ms"].is_i64());
    let row = bill(&people, &job);
    assert_eq!((&row["energy_mj"], &row["carbon_mg"]), (&Value::Null, &Value::Null));
    assert!(!people.server.run_ok(&["cost"]).contains("ENERGY"));
}

#[test]
fn declared_gpus_show_what_their_recording_plays() {
    let told = r#"[{"utilization_percent": 87, "power_watts": 512, "memory_used_mib": 1024}, {}]"#;
    let (people, _folder) = start(told, &[]);
    let gpus = people.get(&people.kim, "/v1/gpus").json()["items"].clone();
    assert_eq!((&gpus[0]["utilization"], &gpus[0]["watts"]), (&87.into(), &512.into()));
    assert_eq!(gpus[0]["used_bytes"], 1_u64 << 30);
    assert_eq!((&gpus[1]["utilization"], &gpus[1]["watts"]), (&Value::Null, &Value::Null));
}
