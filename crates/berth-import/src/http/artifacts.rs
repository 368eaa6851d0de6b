//! Files of runs and models at a server. The server reads them, whatever they are kept in: a path of
//! its machine says nothing of this one.

use super::json::{list, text};
use super::{Server, patiently};
use crate::error::{Error, Result};
use crate::model::{Content, FileInfo, Owner, Place};
use crate::source::Fut;
use berth_api::client::Pieces;
use berth_api::routes::Method;
use futures_util::{StreamExt, stream};
use serde_json::json;
use std::io;

/// The maximum number of files of one run or model.
const MOST_FILES: usize = 1_000_000;

/// The access to the files of a run or model.
enum Way {
    /// Through the server's artifact routes, at this path.
    Proxy(String),
    /// The server reads the store for us. It writes none.
    Asked,
}

fn way(place: &Place) -> Way {
    let uri = place.uri.as_str();
    if let Some(rest) = uri.strip_prefix("mlflow-artifacts:") {
        let path = match rest.strip_prefix("//") {
            // A host is the server itself.
            Some(rest) if !rest.starts_with('/') => {
                rest.split_once('/').map_or("", |(_, path)| path)
            }
            _ => rest,
        };
        return Way::Proxy(path.trim_matches('/').to_owned());
    }
    if let Some((_, path)) = uri.split_once("/mlflow-artifacts/artifacts/")
        && uri.starts_with("http")
    {
        return Way::Proxy(path.trim_matches('/').to_owned());
    }
    Way::Asked
}

impl Server {
    pub(super) async fn list_files(&self, place: &Place) -> Result<Vec<FileInfo>> {
        let way = way(place);
        let mut found = Vec::new();
        let mut folders = vec![String::new()];
        while let Some(folder) = folders.pop() {
            for one in self.list_folder(place, &way, &folder).await? {
                match one {
                    (path, None) => folders.push(path),
                    (path, Some(bytes)) => found.push(FileInfo { path, bytes }),
                }
                if found.len() + folders.len() > MOST_FILES {
                    let why = format!("it has more than {MOST_FILES} files");
                    return Err(Error::odd(place.uri.clone(), why));
                }
            }
        }
        Ok(found)
    }

    /// The entries of a folder, with the sizes of files.
    async fn list_folder(
        &self,
        place: &Place,
        way: &Way,
        folder: &str,
    ) -> Result<Vec<(String, Option<u64>)>> {
        let answer = match (way, &place.owner) {
            (Way::Proxy(base), _) => {
                let path = format!("{base}/{folder}");
                let asked = json!({ "path": path.trim_end_matches('/') });
                let route = (Method::Get, "2.0/mlflow-artifacts/artifacts");
                let ask = || self.client.tracked(route, &asked, self.team.as_deref());
                patiently(|| async {
                    ask().await.map_err(|source| self.failed("listing artifacts", source))
                })
                .await?
            }
            (_, Owner::Run(id)) => {
                let asked = json!({ "run_id": id, "path": (!folder.is_empty()).then_some(folder) });
                self.ask((Method::Get, "artifacts/list"), &asked).await?
            }
            (_, Owner::Model(id)) => {
                let path = format!("logged-models/{id}/artifacts/directories");
                let inside = (!folder.is_empty()).then_some(folder);
                self.ask((Method::Get, &path), &json!({ "artifact_directory_path": inside }))
                    .await?
            }
        };
        let entry = |one: &serde_json::Value| {
            let name = text(&one["path"]);
            // One route returns names in the folder; the others return paths from the root.
            let name = name.rsplit('/').next().unwrap_or_default();
            let path = match folder {
                "" => name.to_owned(),
                folder => format!("{folder}/{name}"),
            };
            let size = one["file_size"].as_u64().or_else(|| text(&one["file_size"]).parse().ok());
            let is_folder = one["is_dir"].as_bool().unwrap_or(false);
            (path, (!is_folder).then(|| size.unwrap_or(0)))
        };
        Ok(list(&answer["files"]).map(entry).collect())
    }

    pub(super) async fn open_file(&self, place: &Place, path: &str) -> Result<Content> {
        let way = way(place);
        let pieces = patiently(|| async {
            let opened = match (&way, &place.owner) {
                (Way::Proxy(base), _) => self.client.artifact(&format!("{base}/{path}")).await,
                (_, Owner::Run(id)) => {
                    let query = [("run_uuid", id.as_str()), ("path", path)];
                    self.client.file_at("get-artifact", &query).await
                }
                (_, Owner::Model(id)) => {
                    let at = format!("ajax-api/2.0/mlflow/logged-models/{id}/artifacts/files");
                    self.client.file_at(&at, &[("artifact_file_path", path)]).await
                }
            };
            opened.map_err(|source| self.failed("fetching an artifact", source))
        })
        .await?;
        Ok(Content { bytes: pieces.length(), pieces: stream_of(pieces) })
    }

    /// Berth returns the SHA-256 sum as ETag.
    pub(super) async fn sum_of_file(&self, place: &Place, path: &str) -> Result<Option<String>> {
        let Way::Proxy(base) = way(place) else { return Ok(None) };
        let path = format!("{base}/{path}");
        let tag = self.client.artifact_tag(&path).await;
        let is_sum = |tag: &String| tag.len() == 64 && tag.bytes().all(|b| b.is_ascii_hexdigit());
        // If the server does not support HEAD, read the file.
        Ok(tag.ok().flatten().filter(is_sum))
    }

    pub(super) async fn put_file<'a>(
        &self,
        place: &Place,
        path: &str,
        open: &(dyn Fn() -> Fut<'a, Content> + 'a),
    ) -> Result<()> {
        let base = match way(place) {
            Way::Proxy(base) => base,
            Way::Asked => {
                let what = format!("artifacts at {}", place.uri);
                let why = "the server lets clients write there themselves; start it with \
                           --serve-artifacts and an artifact root of mlflow-artifacts:/";
                return Err(Error::Refused { what, why: why.to_owned() });
            }
        };
        let path = format!("{base}/{path}");
        patiently(|| async {
            let Content { bytes, pieces } = open().await?;
            let sent = self.client.put_artifact(&path, pieces, bytes).await;
            sent.map_err(|source| self.failed("sending an artifact", source))
        })
        .await
    }
}

fn stream_of(pieces: Pieces) -> stream::BoxStream<'static, io::Result<Vec<u8>>> {
    stream::unfold(Some(pieces), async |open| {
        let mut pieces = open?;
        match pieces.next().await {
            Ok(Some(piece)) => Some((Ok(piece), Some(pieces))),
            Ok(None) => None,
            Err(error) => Some((Err(io::Error::other(error)), None)),
        }
    })
    .boxed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_reached_as_their_address_says() {
        let proxied = |uri: &str| {
            let place = Place { uri: uri.to_owned(), owner: Owner::Run("r".to_owned()) };
            match way(&place) {
                Way::Proxy(path) => Some(path),
                Way::Asked => None,
            }
        };
        assert_eq!(proxied("mlflow-artifacts:/1/r/artifacts").as_deref(), Some("1/r/artifacts"));
        assert_eq!(proxied("mlflow-artifacts://host:5000/1/r").as_deref(), Some("1/r"));
        let address = "http://host/api/2.0/mlflow-artifacts/artifacts/1/r";
        assert_eq!(proxied(address).as_deref(), Some("1/r"));
        assert_eq!(proxied("s3://bucket/1/r"), None);
        assert_eq!(proxied("/no/such/folder"), None);
    }
}
