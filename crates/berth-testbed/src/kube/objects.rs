//! Objects of a cluster, read and written by requests of this process. The words are those of
//! kubectl; where kubectl itself is what a test looks at, the test starts it.

use super::discovery::{self, Resource};
use super::words::Words;
use crate::http::{self, Answer, Request};
use reqwest::{Client, Method};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// A kind that was just defined is listed after a moment.
const DISCOVERY: Duration = Duration::from_secs(20);

/// Waiting ends when what is awaited happens. This is only for a machine where it never does.
const PATIENCE: Duration = Duration::from_secs(120);

const PAUSE: Duration = Duration::from_millis(20);

/// The objects of a cluster, for the administrator. Cheap to clone, and of use in any thread.
#[derive(Debug, Clone)]
pub struct Objects {
    client: Client,
    url: String,
    resources: Arc<Mutex<Arc<Vec<Resource>>>>,
}

/// Why a request has no object as its answer.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// There is no such kind, or no such object.
    #[error("it is not there")]
    NotFound,
    #[error("it is there already")]
    AlreadyExists,
    /// What the API server says.
    #[error("{status}: {message}")]
    Other { status: u16, message: String },
    #[error("{0}")]
    NoAnswer(http::Error),
}

impl Objects {
    pub(super) fn new(client: Client, url: String) -> Objects {
        Objects { client, url, resources: Arc::default() }
    }

    /// What `kubectl get` finds: an object, or a list where no name is given.
    ///
    /// # Panics
    ///
    /// If there is no such object, or the API server is away.
    pub fn get(&self, words: &[&str]) -> Value {
        let asked = Words::parse(words);
        let of = |kind: &str| {
            let found = self.ask(&self.resource_once_served(kind), &asked);
            found.unwrap_or_else(|refusal| panic!("get {words:?}: {refusal:?}"))
        };
        if !asked.kind.contains(',') {
            return of(&asked.kind);
        }
        let lists: Vec<Value> = asked.kinds().map(of).collect();
        let items = lists.iter().filter_map(|list| list["items"].as_array()).flatten();
        json!({ "items": items.collect::<Vec<&Value>>() })
    }

    /// The same; none if there is no such object or kind, or the API server does not answer.
    pub fn find(&self, words: &[&str]) -> Option<Value> {
        let asked = Words::parse(words);
        let resource = self.resource(&asked.kind)?;
        self.ask(&resource, &asked).ok()
    }

    /// Deletes objects, and waits until they are gone unless `--wait=false` is said.
    ///
    /// # Panics
    ///
    /// If there is no such object.
    pub fn delete(&self, words: &[&str]) {
        let deleted = self.try_delete(words);
        deleted.unwrap_or_else(|refusal| panic!("delete {words:?}: {refusal}"));
    }

    /// The same, with what the API server says where it is refused, or why it is not asked.
    pub fn try_delete(&self, words: &[&str]) -> Result<(), Refusal> {
        let asked = Words::parse(words);
        let mut deleted = Vec::new();
        for kind in asked.kinds() {
            let resource = self.resource_once_served(kind);
            for (namespace, name) in self.chosen(&resource, &asked) {
                let path = format!("{}/{name}", resource.path(namespace.as_deref()));
                match self.delete_path(&path, asked.grace_seconds) {
                    Ok(uid) => deleted.push((path, uid)),
                    // What a list named may be gone by now.
                    Err(Refusal::NotFound) if asked.ignores_missing || asked.all => {}
                    Err(refusal) => return Err(refusal),
                }
            }
        }
        if asked.does_not_wait {
            return Ok(());
        }
        let until = Instant::now() + PATIENCE;
        for (path, uid) in deleted {
            // Another one of the same name may be there by now.
            while self.get_path(&path).is_ok_and(|object| object["metadata"]["uid"] == uid) {
                assert!(Instant::now() < until, "delete {words:?}: {path} stays");
                sleep(PAUSE);
            }
        }
        Ok(())
    }

    /// Changes a part of an object.
    ///
    /// # Panics
    ///
    /// If it is refused.
    pub fn patch(&self, words: &[&str]) {
        let changed = self.try_patch(words);
        changed.unwrap_or_else(|refusal| panic!("patch {words:?}: {refusal}"));
    }

    /// The same, with what the API server says where it is refused.
    pub fn try_patch(&self, words: &[&str]) -> Result<(), Refusal> {
        let asked = Words::parse(words);
        let [name] = &asked.names[..] else { panic!("patch {words:?}: of which name?") };
        let media = match asked.patch_type.as_deref() {
            None | Some("strategic") => "application/strategic-merge-patch+json",
            Some("merge") => "application/merge-patch+json",
            Some("json") => "application/json-patch+json",
            Some(other) => panic!("patch {words:?}: there is no type {other}"),
        };
        let patch = asked.patch.clone().unwrap_or_else(|| panic!("patch {words:?}: how?"));
        let mut path = self.path_of(&asked, name);
        if let Some(part) = &asked.subresource {
            path = format!("{path}/{part}");
        }
        self.send_patch(&path, media, patch)
    }

    /// Sets labels (`disk=fast`), or takes them off (`disk-`).
    ///
    /// # Panics
    ///
    /// If it is refused.
    pub fn label(&self, words: &[&str]) {
        self.change_metadata("labels", words);
    }

    /// Sets annotations, or takes them off.
    ///
    /// # Panics
    ///
    /// If it is refused.
    pub fn annotate(&self, words: &[&str]) {
        let changed = self.try_annotate(words);
        changed.unwrap_or_else(|refusal| panic!("annotate {words:?}: {refusal}"));
    }

    /// The same, with what the API server says where it is refused.
    pub fn try_annotate(&self, words: &[&str]) -> Result<(), Refusal> {
        self.try_change_metadata("annotations", words)
    }

    /// Whether a user may do something to a kind, such as `pods/log` or `jobs.berth.dev`, in a
    /// namespace or, without one, in all of them.
    ///
    /// # Panics
    ///
    /// If the API server does not say.
    pub fn may(&self, user: &str, verb: &str, what: &str, namespace: Option<&str>) -> bool {
        let (what, part) = what.split_once('/').unwrap_or((what, ""));
        let (resource, group) = what.split_once('.').unwrap_or((what, ""));
        // As the API server does for whoever has the token of a service account.
        let account = user.strip_prefix("system:serviceaccount:").and_then(|it| it.split_once(':'));
        let mut groups = vec!["system:authenticated".to_owned()];
        if let Some((namespace, _)) = account {
            groups.push("system:serviceaccounts".to_owned());
            groups.push(format!("system:serviceaccounts:{namespace}"));
        }
        let review = json!({
            "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
            "spec": { "user": user, "groups": groups, "resourceAttributes": {
                "verb": verb, "group": group, "resource": resource, "subresource": part,
                "namespace": namespace,
            } },
        });
        let path = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
        let request = Request::new(Method::POST, self.at(path));
        let answer = self.send(request.body("application/json", review.to_string()));
        let answer = answer.unwrap_or_else(|refusal| panic!("{user}: {refusal:?}"));
        answer["status"]["allowed"] == true
    }

    /// Sends a body to a path of the API, and returns whether it was taken.
    pub fn post(&self, path: &str, body: &str) -> bool {
        let request = Request::new(Method::POST, self.at(path));
        let answer = request.body("application/json", body.to_owned()).send(&self.client);
        answer.is_ok_and(|answer| answer.is_success())
    }

    /// Makes an object at a path of the API.
    ///
    /// # Errors
    ///
    /// What the API server says where it is refused.
    pub fn try_post(&self, path: &str, object: &Value) -> Result<Value, Refusal> {
        let request = Request::new(Method::POST, self.at(path));
        self.send(request.body("application/json", object.to_string()))
    }

    /// Deletes all objects at a path of the API, at once.
    ///
    /// # Errors
    ///
    /// What the API server says where it is refused.
    pub fn delete_all(&self, path: &str) -> Result<(), Refusal> {
        self.delete_path(path, Some(0)).map(drop)
    }

    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    /// Whether the page is there.
    pub(super) fn answers(&self, path: &str) -> bool {
        self.send(Request::get(self.at(path))).is_ok()
    }

    /// Makes an object that is not there yet. A kind that was just defined is waited for.
    pub(super) fn create(&self, object: &Value) -> Result<(), Refusal> {
        let until = Instant::now() + DISCOVERY;
        let namespace = object["metadata"]["namespace"].as_str().unwrap_or("default");
        loop {
            let resource = self.once_served(&object["kind"].to_string(), |all| {
                discovery::of_object(all, object).cloned()
            });
            let path = resource.path(Some(namespace));
            let query = "fieldManager=kubectl-client-side-apply&fieldValidation=Strict";
            let request = Request::new(Method::POST, self.at(&format!("{path}?{query}")));
            match self.send(request.body("application/json", object.to_string())) {
                Err(Refusal::NotFound) if Instant::now() < until => sleep(PAUSE),
                answer => return answer.map(drop),
            }
        }
    }

    /// All kinds, asked anew.
    pub(super) fn resources(&self) -> Result<Arc<Vec<Resource>>, Refusal> {
        let mut found = Vec::new();
        for path in discovery::PATHS {
            let list = self.send(Request::get(self.at(path)).accept(discovery::ACCEPT))?;
            found.extend(discovery::parse(&list));
        }
        let found = Arc::new(found);
        *self.resources.lock().unwrap_or_else(PoisonError::into_inner) = found.clone();
        Ok(found)
    }

    /// All objects of a kind, in all namespaces.
    pub(super) fn list(&self, resource: &Resource) -> Result<Vec<Value>, Refusal> {
        let list = self.get_path(&resource.path(None))?;
        Ok(list["items"].as_array().cloned().unwrap_or_default())
    }

    pub(super) fn get_path(&self, path: &str) -> Result<Value, Refusal> {
        self.send(Request::get(self.at(path)))
    }

    pub(super) fn put(&self, path: &str, object: &Value) -> Result<Value, Refusal> {
        let request = Request::new(Method::PUT, self.at(path));
        self.send(request.body("application/json", object.to_string()))
    }

    /// Returns who was deleted.
    pub(super) fn delete_path(&self, path: &str, grace: Option<u32>) -> Result<Value, Refusal> {
        let options = json!({ "apiVersion": "v1", "kind": "DeleteOptions",
            "gracePeriodSeconds": grace, "propagationPolicy": "Background" });
        let request = Request::new(Method::DELETE, self.at(path));
        let answer = self.send(request.body("application/json", options.to_string()))?;
        // The object, or a status about it.
        let uid = match answer["kind"] == "Status" {
            true => &answer["details"]["uid"],
            false => &answer["metadata"]["uid"],
        };
        Ok(uid.clone())
    }

    pub(super) fn send_patch(
        &self,
        path: &str,
        media: &'static str,
        patch: String,
    ) -> Result<(), Refusal> {
        let request = Request::new(Method::PATCH, self.at(path)).body(media, patch);
        self.send(request).map(drop)
    }

    fn ask(&self, resource: &Resource, asked: &Words) -> Result<Value, Refusal> {
        let path = resource.path(asked.namespace());
        let object = match &asked.names[..] {
            [name] => return self.get_path(&format!("{path}/{name}")),
            [] => {
                let selectors =
                    [("labelSelector", &asked.selector), ("fieldSelector", &asked.field_selector)];
                let query: Vec<String> = selectors
                    .into_iter()
                    .filter_map(|(name, value)| Some(format!("{name}={}", escape(value.as_ref()?))))
                    .collect();
                let mut list = self.get_path(&format!("{path}?{}", query.join("&")))?;
                for item in list["items"].as_array_mut().into_iter().flatten() {
                    // The list alone says it, for all of them.
                    item["apiVersion"] = resource.api_version().into();
                    item["kind"] = resource.kind.clone().into();
                }
                list
            }
            names => {
                let one = |name: &String| self.get_path(&format!("{path}/{name}"));
                json!({ "items": names.iter().map(one).collect::<Result<Vec<Value>, Refusal>>()? })
            }
        };
        Ok(object)
    }

    /// The objects that are to be deleted: namespaces and names.
    fn chosen(&self, resource: &Resource, asked: &Words) -> Vec<(Option<String>, String)> {
        let namespace = asked.namespace().map(str::to_owned);
        if !asked.all && asked.selector.is_none() {
            return asked.names.iter().map(|name| (namespace.clone(), name.clone())).collect();
        }
        let list = self.ask(resource, asked).unwrap_or_else(|error| panic!("{asked:?}: {error:?}"));
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let items = list["items"].as_array().into_iter().flatten();
        items
            .map(|object| &object["metadata"])
            .map(|metadata| {
                (text(&metadata["namespace"]), text(&metadata["name"]).unwrap_or_default())
            })
            .collect()
    }

    fn change_metadata(&self, field: &str, words: &[&str]) {
        let changed = self.try_change_metadata(field, words);
        changed.unwrap_or_else(|refusal| panic!("{field} {words:?}: {refusal}"));
    }

    fn try_change_metadata(&self, field: &str, words: &[&str]) -> Result<(), Refusal> {
        let asked = Words::parse(words);
        let [name, changes @ ..] = &asked.names[..] else { panic!("{field} {words:?}: of what?") };
        let mut values = json!({});
        for change in changes {
            match change.split_once('=') {
                Some((key, value)) => values[key] = value.into(),
                None => values[change.trim_end_matches('-')] = Value::Null,
            }
        }
        let patch = json!({ "metadata": { field: values } }).to_string();
        let path = self.path_of(&asked, name);
        self.send_patch(&path, "application/merge-patch+json", patch)
    }

    fn path_of(&self, asked: &Words, name: &str) -> String {
        let resource = self.resource_once_served(&asked.kind);
        format!("{}/{name}", resource.path(asked.namespace()))
    }

    /// The kind that a word means, looked for among those that are known, then among those that
    /// there are now.
    fn resource(&self, word: &str) -> Option<Resource> {
        self.look_up(|all| discovery::by_word(all, word).cloned())
    }

    fn resource_once_served(&self, word: &str) -> Resource {
        self.once_served(word, |all| discovery::by_word(all, word).cloned())
    }

    fn look_up(&self, find: impl Fn(&[Resource]) -> Option<Resource>) -> Option<Resource> {
        let known = self.resources.lock().unwrap_or_else(PoisonError::into_inner).clone();
        find(&known).or_else(|| find(&self.resources().ok()?))
    }

    fn once_served(&self, word: &str, find: impl Fn(&[Resource]) -> Option<Resource>) -> Resource {
        let until = Instant::now() + DISCOVERY;
        loop {
            if let Some(found) = self.look_up(&find) {
                return found;
            }
            assert!(Instant::now() < until, "the API server has no kind {word}");
            sleep(PAUSE);
        }
    }

    fn at(&self, path: &str) -> String {
        format!("{}{path}", self.url)
    }

    fn send(&self, request: Request) -> Result<Value, Refusal> {
        let answer = request.send(&self.client).map_err(Refusal::NoAnswer)?;
        let reason = || answer.json()["reason"].as_str().unwrap_or_default().to_owned();
        match answer.status {
            _ if answer.is_success() => Ok(answer.json()),
            404 => Err(Refusal::NotFound),
            409 if reason() == "AlreadyExists" => Err(Refusal::AlreadyExists),
            status => Err(Refusal::Other { status, message: message(&answer) }),
        }
    }
}

/// What the API server says about a refusal.
fn message(answer: &Answer) -> String {
    let text = answer.json()["message"].as_str().map(str::to_owned);
    text.unwrap_or_else(|| answer.body.clone())
}

/// A value in a query.
pub(super) fn escape(value: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    value
        .bytes()
        .map(|byte| match plain(byte) {
            true => char::from(byte).to_string(),
            false => format!("%{byte:02X}"),
        })
        .collect()
}
