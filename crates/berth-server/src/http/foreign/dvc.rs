//! A remote of DVC: objects by their MD5 sums. DVC asks whether an object is there by a GET that it
//! does not read, so headers come at once.

use super::give::give;
use super::take::{Taken, said};
use crate::app::App;
use crate::http::answer::{Failure, Json};
use crate::http::asking::Asking;
use crate::http::extract::Path;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, Method};
use axum::response::Response;
use berth_api::Code;
use berth_api::access::Permission;
use berth_model::DataHash;
use berth_service::Fault;
use berth_service::dvc;
use berth_service::stream_right::Needs;
use serde_json::{Value, json};

fn hash(path: &str) -> Result<DataHash, Failure> {
    DataHash::of_path(path).ok_or_else(|| {
        let shown: String = path.chars().take(100).collect();
        let detail = format!("`{shown}` is not an object of a remote");
        Failure(Fault::new(Code::NotFound, detail).next("objects are at files/md5/XX/YYY…"))
    })
}

pub async fn get(
    State(app): State<App>,
    Asking(caller): Asking,
    method: Method,
    headers: HeaderMap,
    Path((team, path)): Path<(String, String)>,
) -> Result<Response, Failure> {
    let hash = hash(&path)?;
    let found = dvc::open(&app.service, &caller, &team, &hash).await?;
    let needs = Needs::InTeam(team, Permission::DataRead);
    give(&app, &caller, needs, (&method, &headers), &found).await
}

pub async fn put(
    State(app): State<App>,
    Asking(caller): Asking,
    headers: HeaderMap,
    Path((team, path)): Path<(String, String)>,
    body: Body,
) -> Result<Json<Value>, Failure> {
    let hash = hash(&path)?;
    let mut taken = Taken::new(body);
    let begun = dvc::begin(&app.service, &caller, &team, &hash, said(&headers)).await;
    let mut begun = match begun {
        Ok(begun) => begun,
        Err(fault) => return taken.refuse(fault).await,
    };
    while let Some(piece) = taken.next().await? {
        begun = match begun.write(&app.service, piece).await {
            Ok(begun) => begun,
            Err(fault) => return taken.refuse(fault).await,
        };
    }
    dvc::finish(&app.service, &caller, &hash, begun).await?;
    Ok(Json(json!({})))
}
