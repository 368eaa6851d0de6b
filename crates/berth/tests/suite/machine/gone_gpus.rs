//! A machine that comes back with other GPUs than it had, while jobs run on them.

use super::people::People;
use super::server::until;
use serde_json::Value;

/// A job that runs until it is stopped, and is tried again soon.
fn runs(people: &People, name: &str, gpus: u32) -> String {
    let file = format!(
        "team: vision\nname: {name}\ngpus: {gpus}\nretry: {{wait: 1s}}\nrun: 'exec sleep 600'\n"
    );
    let job = people.job(&people.kim, &file);
    people.until_is(&job, "running");
    job
}

fn attempts(people: &People, job: &str) -> Value {
    people.server.job(job)["attempts"].clone()
}

fn number_of_gpus(people: &People) -> usize {
    people.get(&people.kim, "/v1/gpus").json()["items"].as_array().unwrap().len()
}

#[test]
fn a_machine_with_fewer_gpus_starts_and_runs_elsewhere_what_was_on_those_that_are_gone() {
    let mut people = People::start("8xH100");
    let stays = runs(&people, "stays", 2);
    let too_large = runs(&people, "too-large", 5);
    let moves = runs(&people, "moves", 1);
    people.server.kill();
    people.server.start_again_with(&["--gpus", "4xH100"]);
    assert_eq!(number_of_gpus(&people), 4);
    until("the job goes on elsewhere", || {
        attempts(&people, &moves) == 2 && people.server.job(&moves)["state"] == "running"
    });
    assert_eq!(attempts(&people, &stays), 1, "what ran on the others goes on");
    assert_eq!(people.server.job(&stays)["state"], "running");
    until("the large one waits", || people.server.job(&too_large)["state"] == "pending");
    until("it says why", || {
        people.server.json(&["why", &too_large])["blockers"][0]["code"]
            .as_str()
            .is_some_and(|code| code.starts_with("too-large"))
    });
    let audit = people.get(&people.admin, "/v1/audit?what=gpu_gone").json();
    assert_eq!(audit["rows"].as_array().unwrap().len(), 2, "{audit}");
}

#[test]
fn a_machine_with_more_gpus_starts_while_a_job_runs_on_it() {
    let mut people = People::start("2xH100");
    let stays = runs(&people, "stays", 1);
    people.server.kill();
    people.server.start_again_with(&["--gpus", "4xH100"]);
    assert_eq!(number_of_gpus(&people), 4);
    let large = runs(&people, "large", 3);
    assert_eq!(people.server.job(&large)["state"], "running");
    assert_eq!(attempts(&people, &stays), 1);
}

#[test]
fn a_machine_whose_gpus_are_other_ones_ends_what_ran_on_them() {
    let mut people = People::start("2xH100");
    let moves = runs(&people, "moves", 1);
    people.server.kill();
    people.server.start_again_with(&["--gpus", "2xL4"]);
    until("the job goes on there", || {
        attempts(&people, &moves) == 2 && people.server.job(&moves)["state"] == "running"
    });
}
