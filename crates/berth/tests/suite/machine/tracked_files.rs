//! The files of runs and logged models over MLflow's tracking routes, and tokens that work on these
//! routes and on those of artifacts alike.

use super::http::Request;
use super::people::People;
use super::server::until;
use super::tracking::{refused, text};
use base64::prelude::{BASE64_STANDARD, Engine};
use serde_json::{Value, json};

impl People {
    fn put_file(&self, token: &str, uri: &str, path: &str) {
        let place = uri.strip_prefix("mlflow-artifacts:/").expect("artifacts of this server");
        let path = format!("/api/2.0/mlflow-artifacts/artifacts/{place}/{path}");
        let kept = Request::new("PUT", path).token(Some(token)).body("text/plain", "12345");
        let kept = kept.send(&self.server.url);
        assert_eq!(kept.status, 200, "{kept:?}");
    }
}

#[test]
fn the_files_of_a_run_are_listed_below_its_root_and_only_for_its_team() {
    let people = People::start("1xL4");
    let mia = people.join("mia", "audio", "researcher");
    let made = people.tracked(&people.kim, "experiments/create", &json!({ "name": "files" }));
    let experiment = text(&made["experiment_id"]);
    let run = people.tracked(&people.kim, "runs/create", &json!({ "experiment_id": experiment }));
    let (id, root) =
        (text(&run["run"]["info"]["run_id"]), text(&run["run"]["info"]["artifact_uri"]));
    for path in ["log.txt", "model/MLmodel", "model/data/weights.bin"] {
        people.put_file(&people.kim, &root, path);
    }
    let list = |token: &str, more: &str| {
        people.seen(token, &format!("artifacts/list?run_id={id}&run_uuid={id}{more}"))
    };
    assert_eq!(
        list(&people.kim, "").json(),
        json!({ "root_uri": root, "files": [
            { "path": "log.txt", "is_dir": false, "file_size": 5 },
            { "path": "model", "is_dir": true },
        ] })
    );
    assert_eq!(
        list(&people.kim, "&path=model").json()["files"],
        json!([
            { "path": "model/MLmodel", "is_dir": false, "file_size": 5 },
            { "path": "model/data", "is_dir": true },
        ])
    );
    assert_eq!(list(&people.kim, "&path=none").json()["files"], json!([]));
    refused(&list(&people.kim, "&path=..%2F.."), 400, "INVALID_PARAMETER_VALUE");
    refused(&list(&people.kim, "&page_token=x"), 400, "INVALID_PARAMETER_VALUE");
    // Another team sees neither the run nor its files. If the run is shared, it still cannot read the files.
    refused(&list(&mia, ""), 404, "RESOURCE_DOES_NOT_EXIST");
    let share = json!({ "experiment_id": experiment, "team": "audio" });
    people.tracked(&people.lea, "experiments/share", &share);
    assert_eq!(people.seen(&mia, &format!("runs/get?run_id={id}")).status, 200);
    refused(&list(&mia, ""), 403, "PERMISSION_DENIED");
    for way in ["upload", "download"] {
        let path = format!("artifacts/presigned-{way}-url");
        let asked = people.track(&people.kim, &path, &json!({ "run_id": id, "path": "log.txt" }));
        refused(&asked, 501, "NOT_IMPLEMENTED");
        assert!(text(&asked.json()["message"]).contains("mlflow-artifacts"), "{asked:?}");
    }
}

#[test]
fn the_files_of_a_logged_model_are_listed_below_the_root_of_the_model() {
    let people = People::start("1xL4");
    let made = json!({ "experiment_id": "0", "name": "chat" });
    let model = people.tracked(&people.kim, "logged-models", &made);
    let info = &model["model"]["info"];
    let (id, root) = (text(&info["model_id"]), text(&info["artifact_uri"]));
    people.put_file(&people.kim, &root, "MLmodel");
    people.put_file(&people.kim, &root, "data/weights.bin");
    let list = |more: &str| {
        let path = format!("logged-models/{id}/artifacts/directories{more}");
        people.seen(&people.kim, &path).json()
    };
    let all = list("");
    assert_eq!(text(&all["root_uri"]), root);
    let paths = |of: &Value| -> Vec<String> {
        of["files"].as_array().expect("files").iter().map(|one| text(&one["path"])).collect()
    };
    assert_eq!(paths(&all), ["MLmodel", "data"]);
    assert_eq!(paths(&list("?artifact_directory_path=data")), ["data/weights.bin"]);
}

#[test]
fn every_way_to_give_a_token_works_for_runs_for_artifacts_and_for_data() {
    let people = People::start("1xL4");
    let basic = |text: String| format!("Basic {}", BASE64_STANDARD.encode(text));
    let ways = [
        ("authorization", format!("Bearer {}", people.kim)),
        ("authorization", basic(format!("vision:{}", people.kim))),
        ("authorization", basic(format!("{}:", people.kim))),
        ("x-berth-token", people.kim.clone()),
    ];
    let ask = |path: &str, header: &(&'static str, String)| {
        let mut request = Request::new("GET", path);
        request.headers.push((header.0, header.1.clone()));
        request.send(&people.server.url).status
    };
    let routes = [
        "/api/2.0/mlflow/experiments/get?experiment_id=0",
        "/api/2.0/mlflow-artifacts/artifacts?path=vision",
    ];
    for path in routes {
        for way in &ways {
            assert_eq!(ask(path, way), 200, "{path} {}", way.0);
        }
        for odd in ["Digest x", "Basic !!", "Bearer brt_0123456789abcdef_x"] {
            assert_eq!(ask(path, &("authorization", odd.to_owned())), 401, "{path} {odd}");
        }
    }
    // The audit log records the refusals of both.
    until("the refusals are recorded", || {
        let audit = people.get(&people.admin, "/v1/audit?limit=100&refused=true").body;
        audit.contains("get_experiment") && audit.contains("artifact_list")
    });
}

#[test]
fn a_deleted_run_goes_for_good_with_its_files_and_a_named_one_stays() {
    let people = People::start_with(&["--gpus", "1xL4", "--keep-deleted-runs", "0s"]);
    let create = || {
        let run = people.tracked(&people.kim, "runs/create", &json!({ "experiment_id": "0" }));
        let info = &run["run"]["info"];
        (text(&info["run_id"]), text(&info["artifact_uri"]))
    };
    let ((gone, gone_root), (named, named_root)) = (create(), create());
    people.put_file(&people.kim, &gone_root, "model/weights.bin");
    people.put_file(&people.kim, &named_root, "model/weights.bin");
    people.tracked(&people.kim, "registered-models/create", &json!({ "name": "chat" }));
    let source = format!("runs:/{named}/model");
    let version = json!({ "name": "chat", "source": source, "run_id": named });
    people.tracked(&people.kim, "model-versions/create", &version);
    for run in [&gone, &named] {
        people.tracked(&people.kim, "runs/delete", &json!({ "run_id": run }));
    }
    until("the run is gone", || {
        people.seen(&people.kim, &format!("runs/get?run_id={gone}")).status == 404
    });
    let files = |root: &str| {
        let place = root.strip_prefix("mlflow-artifacts:/").expect("artifacts of this server");
        let path = format!("/api/2.0/mlflow-artifacts/artifacts?path={place}/model");
        people.get(&people.kim, &path).json()
    };
    until("its files are gone", || files(&gone_root) == json!({}));
    until("the audit log says so", || {
        people.get(&people.admin, "/v1/audit?limit=100").body.contains("remove_runs")
    });
    assert_ne!(files(&named_root), json!({}));
    people.tracked(&people.kim, "runs/restore", &json!({ "run_id": named }));
    refused(
        &people.track(&people.kim, "runs/restore", &json!({ "run_id": gone })),
        404,
        "RESOURCE_DOES_NOT_EXIST",
    );
    let figures = people.get(&people.admin, "/metrics").body;
    assert!(figures.contains("berth_tracking_removed_runs_total 1"), "{figures}");
}

#[test]
fn an_admin_removes_deleted_runs_before_their_time() {
    let people = People::start("1xL4");
    let run = people.tracked(&people.kim, "runs/create", &json!({ "experiment_id": "0" }));
    let id = text(&run["run"]["info"]["run_id"]);
    people.tracked(&people.kim, "runs/delete", &json!({ "run_id": id }));
    let clean = |more: &[&str]| {
        people.server.run_ok(&[&["runs", "clean", "--older-than", "0s"], more].concat())
    };
    assert_eq!(clean(&["--dry-run"]), "Would remove 1 run and 0 experiments\n");
    let seen = || people.seen(&people.kim, &format!("runs/get?run_id={id}")).status;
    assert_eq!(seen(), 200, "it was only looked for");
    // A team lead may restore it, but not remove it for good.
    let wish = json!({ "older_than": "0s" });
    let refused = people.ask(&people.lea, "POST", "/v1/runs/clean", &wish);
    assert_eq!(refused.status, 403, "{refused:?}");
    assert_eq!(
        people.server.run_ok(&["runs", "clean", "-y"]),
        "Removing 0 runs and 0 experiments\n"
    );
    assert_eq!(clean(&["-y"]), "Removing 1 run and 0 experiments\n");
    until("the run is gone", || seen() == 404);
}

#[test]
fn an_attempt_to_change_a_run_of_another_team_is_in_the_audit_log() {
    let people = People::start("1xL4");
    let mia = people.join("mia", "audio", "researcher");
    let run = people.tracked(&people.kim, "runs/create", &json!({ "experiment_id": "0" }));
    let id = text(&run["run"]["info"]["run_id"]);
    let tag = json!({ "run_id": id, "key": "a", "value": "b" });
    refused(&people.track(&mia, "runs/set-tag", &tag), 404, "RESOURCE_DOES_NOT_EXIST");
    // What is merely wrong is not recorded.
    let wrong = json!({ "run_id": id, "key": "../a", "value": "b" });
    refused(&people.track(&people.kim, "runs/set-tag", &wrong), 400, "INVALID_PARAMETER_VALUE");
    let rows = || people.get(&people.admin, "/v1/audit?limit=100&refused=true").json();
    let of = |who: &str| {
        let all = rows()["rows"].as_array().cloned().unwrap_or_default();
        all.iter().filter(|row| row["who"] == who && row["what"] == "set_run_tag").count()
    };
    until("the attempt is recorded", || of("mia") == 1);
    assert_eq!(of("kim"), 0);
}

#[test]
fn a_new_team_sees_nothing_of_a_removed_team_of_its_name() {
    let people = People::start("1xL4");
    let mia = people.join("mia", "audio", "team_lead");
    let make = |token: &str, name: &str| {
        let made = people.tracked(token, "experiments/create", &json!({ "name": name }));
        let experiment = text(&made["experiment_id"]);
        let wish = json!({ "experiment_id": experiment });
        let run = people.tracked(token, "runs/create", &wish);
        (experiment, text(&run["run"]["info"]["run_id"]))
    };
    let (experiment, run) = make(&people.kim, "digits");
    people.tracked(&people.kim, "registered-models/create", &json!({ "name": "chat" }));
    let version = json!({ "name": "chat", "source": format!("runs:/{run}/model"), "run_id": run });
    people.tracked(&people.kim, "model-versions/create", &version);
    let (shared, kept) = make(&mia, "sounds");
    let share = json!({ "experiment_id": shared, "team": "vision" });
    people.tracked(&mia, "experiments/share", &share);
    let sees = |path: String| people.seen(&people.kim, &path).status;
    assert_eq!(sees(format!("runs/get?run_id={kept}")), 200);

    people.server.run_ok(&["team", "rm", "vision", "-y"]);
    people.server.run_ok(&["team", "add", "vision"]);
    people.give("kim", "vision", "researcher");
    assert_eq!(sees(format!("experiments/get?experiment_id={experiment}")), 404);
    assert_eq!(sees(format!("runs/get?run_id={run}")), 404);
    assert_eq!(sees("registered-models/get?name=chat".to_owned()), 404);
    assert_eq!(sees("model-versions/get?name=chat&version=1".to_owned()), 404);
    assert_eq!(sees(format!("runs/get?run_id={kept}")), 404, "the share ended");
    assert_eq!(people.seen(&mia, &format!("runs/get?run_id={kept}")).status, 200);
    let audit = people.get(&people.admin, "/v1/audit?limit=100").body;
    assert!(audit.contains("remove_team_records"), "{audit}");
    // The names are free, and what the new team logs stays.
    let (_, run) = make(&people.kim, "digits");
    people.tracked(&people.kim, "registered-models/create", &json!({ "name": "chat" }));
    assert_eq!(sees(format!("runs/get?run_id={run}")), 200);
}
