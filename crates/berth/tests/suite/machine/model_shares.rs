//! Registered models that a team shares with another one, read-only.

use super::people::People;
use super::tracking::{refused, text};
use serde_json::{Value, json};

const AUDIO: &str = "/v1/models/vision/chat/shares/audio";

/// A model of team vision with one version and an alias.
fn with_chat() -> People {
    let people = People::start("1xL4");
    people.tracked(&people.kim, "registered-models/create", &json!({ "name": "chat" }));
    let source = "https://models.example.com/chat";
    let version = json!({ "name": "chat", "source": source });
    people.tracked(&people.kim, "model-versions/create", &version);
    let alias = json!({ "name": "chat", "alias": "champion", "version": "1" });
    people.tracked(&people.kim, "registered-models/alias", &alias);
    people
}

fn names(people: &People, token: &str) -> Vec<String> {
    let found = people.seen(token, "registered-models/search").json();
    let found = found["registered_models"].as_array().cloned().unwrap_or_default();
    found.iter().map(|one| text(&one["name"])).collect()
}

fn versions(people: &People, token: &str, name: &str) -> Vec<Value> {
    let path = format!("model-versions/search?filter=name%3D%27{}%27", name.replace('/', "%2F"));
    people.seen(token, &path).json()["model_versions"].as_array().cloned().unwrap_or_default()
}

#[test]
fn a_model_of_another_team_does_not_exist_until_it_is_shared_and_is_then_read_only() {
    let people = with_chat();
    let mia = people.join("mia", "audio", "researcher");
    let reads = [
        "registered-models/get?name=vision%2Fchat",
        "registered-models/get-latest-versions?name=vision%2Fchat",
        "registered-models/alias?name=vision%2Fchat&alias=champion",
        "model-versions/get?name=vision%2Fchat&version=1",
        "model-versions/get-download-uri?name=vision%2Fchat&version=1",
    ];
    for path in reads {
        refused(&people.seen(&mia, path), 404, "RESOURCE_DOES_NOT_EXIST");
    }
    assert!(names(&people, &mia).is_empty() && versions(&people, &mia, "vision/chat").is_empty());
    let none = json!({});
    let shared = people.ask(&people.kim, "PUT", AUDIO, &none);
    assert_eq!((shared.status, shared.json()), (200, json!({ "teams": ["audio"] })));
    for path in reads {
        assert_eq!(people.seen(&mia, path).status, 200, "{path}");
    }
    let found = people.seen(&mia, reads[2]).json();
    assert_eq!(found["model_version"]["name"], "vision/chat");
    assert_eq!(found["model_version"]["aliases"], json!(["champion"]));
    assert_eq!(names(&people, &mia), ["vision/chat"]);
    assert_eq!(versions(&people, &mia, "vision/chat")[0]["name"], "vision/chat");
    // For its own team it has its own name, which the whole name stands for, too.
    assert_eq!(names(&people, &people.kim), ["chat"]);
    assert_eq!(people.seen(&people.kim, reads[0]).json()["registered_model"]["name"], "chat");
    assert_eq!(versions(&people, &people.kim, "vision/chat").len(), 1);
    // A tag that is called so is no name.
    let tagged = people.seen(&people.kim, "model-versions/search?filter=tags.name%3D%27chat%27");
    assert_eq!((tagged.status, tagged.json()["model_versions"].clone()), (200, json!([])));
    // A model of the same name in the other team is another one.
    refused(&people.seen(&mia, "registered-models/get?name=chat"), 404, "RESOURCE_DOES_NOT_EXIST");
    let tag = json!({ "name": "vision/chat", "key": "a", "value": "b" });
    let alias = json!({ "name": "vision/chat", "alias": "mine", "version": "1" });
    let stage = json!({ "name": "vision/chat", "version": "1", "stage": "Production" });
    for (path, fields) in [
        ("registered-models/set-tag", &tag),
        ("registered-models/alias", &alias),
        ("model-versions/transition-stage", &stage),
    ] {
        refused(&people.track(&mia, path, fields), 403, "PERMISSION_DENIED");
    }
    let delete = json!({ "name": "vision/chat" });
    let deleted = people.ask(&mia, "DELETE", "/api/2.0/mlflow/registered-models/delete", &delete);
    refused(&deleted, 403, "PERMISSION_DENIED");
    let ended = people.ask(&people.kim, "DELETE", AUDIO, &none);
    assert_eq!((ended.status, ended.json()), (200, json!({ "teams": [] })));
    for path in reads {
        refused(&people.seen(&mia, path), 404, "RESOURCE_DOES_NOT_EXIST");
    }
    assert!(names(&people, &mia).is_empty());
    let audit = people.server.run_ok(&["audit", "list", "-o", "json"]);
    assert!(audit.contains("share_model") && audit.contains("unshare_model"), "{audit}");
}

#[test]
fn only_who_may_manage_a_model_shares_it_and_only_with_another_team() {
    let people = with_chat();
    let mia = people.join("mia", "audio", "researcher");
    let kit = people.join("kit", "vision", "researcher");
    let none = json!({});
    let list = "/v1/models/vision/chat/shares";
    // A researcher shares own models only, a lead all of the team.
    assert_eq!(people.ask(&kit, "PUT", AUDIO, &none).status, 403);
    assert_eq!(people.ask(&people.lea, "PUT", AUDIO, &none).status, 200);
    // The other team can read it, but cannot list or change its shares.
    assert_eq!(people.get(&mia, list).status, 404);
    assert_eq!(people.ask(&mia, "PUT", &format!("{list}/*"), &none).status, 404);
    for (with, status) in [("nobody", 404), ("vision", 400)] {
        let answer = people.ask(&people.kim, "PUT", &format!("{list}/{with}"), &none);
        assert_eq!(answer.status, status, "{answer:?}");
    }
    let other = people.ask(&people.kim, "DELETE", &format!("{list}/*"), &none);
    assert_eq!(other.status, 404, "it is not shared with every team: {other:?}");
}

#[test]
fn a_share_follows_a_renamed_model_and_ends_with_it() {
    let people = with_chat();
    let mia = people.join("mia", "audio", "researcher");
    people.ask(&people.kim, "PUT", AUDIO, &json!({}));
    let rename = json!({ "name": "chat", "new_name": "talk" });
    people.tracked(&people.kim, "registered-models/rename", &rename);
    assert_eq!(names(&people, &mia), ["vision/talk"]);
    let path = "/api/2.0/mlflow/registered-models/delete";
    let deleted = people.ask(&people.kim, "DELETE", path, &json!({ "name": "talk" }));
    assert_eq!(deleted.status, 200, "{deleted:?}");
    assert!(names(&people, &mia).is_empty());
    // A new model of that name is not shared.
    people.tracked(&people.kim, "registered-models/create", &json!({ "name": "talk" }));
    assert!(names(&people, &mia).is_empty());
}

#[test]
fn a_new_team_of_an_old_name_sees_no_model_that_was_shared_with_the_old_one() {
    let people = with_chat();
    people.ask(&people.kim, "PUT", AUDIO, &json!({}));
    people.server.run_ok(&["team", "rm", "audio", "-y"]);
    people.admin("POST", "/v1/teams", &json!({ "name": "audio" }));
    let mia = people.join("mia", "audio", "researcher");
    assert!(names(&people, &mia).is_empty());
    let shares = people.get(&people.kim, "/v1/models/vision/chat/shares");
    assert_eq!(shares.json(), json!({ "teams": [] }));
}

#[test]
fn a_model_is_shared_on_the_command_line() {
    let people = with_chat();
    let mia = people.join("mia", "audio", "researcher");
    let server = &people.server;
    let said = server.run_ok(&["models", "share", "vision/chat", "--with", "*"]);
    assert_eq!(said, "Every team may read model vision/chat\n");
    let listed = server.json(&["models", "shares", "chat", "--team", "vision"]);
    assert_eq!(listed, json!({ "teams": ["*"] }));
    assert_eq!(names(&people, &mia), ["vision/chat"]);
    server.run_ok(&["models", "unshare", "chat", "--team", "vision", "--with", "*"]);
    assert!(names(&people, &mia).is_empty());
}
