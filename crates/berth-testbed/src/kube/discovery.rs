//! The kinds that an API server has, as it lists them itself.

use serde_json::Value;

/// One kind of objects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Resource {
    /// Empty for the core group.
    pub group: String,
    pub version: String,
    pub kind: String,
    pub plural: String,
    singular: String,
    short_names: Vec<String>,
    pub is_namespaced: bool,
    pub verbs: Vec<String>,
}

impl Resource {
    pub fn api_version(&self) -> String {
        match self.group.as_str() {
            "" => self.version.clone(),
            group => format!("{group}/{}", self.version),
        }
    }

    /// The path of its objects, of one namespace or of all.
    pub fn path(&self, namespace: Option<&str>) -> String {
        let Resource { group, version, plural, .. } = self;
        let root = match group.as_str() {
            "" => format!("/api/{version}"),
            group => format!("/apis/{group}/{version}"),
        };
        match namespace.filter(|_| self.is_namespaced) {
            Some(namespace) => format!("{root}/namespaces/{namespace}/{plural}"),
            None => format!("{root}/{plural}"),
        }
    }

    pub fn can(&self, verb: &str) -> bool {
        self.verbs.iter().any(|one| one == verb)
    }

    /// Whether kubectl knows it by this word, such as `pods`, `po`, `jobs.batch` or
    /// `jobs.v1.batch`.
    fn is_called(&self, word: &str) -> bool {
        let (name, rest) = word.split_once('.').unwrap_or((word, ""));
        let name = name.to_lowercase();
        let Resource { group, version, .. } = self;
        let is_name = name == self.plural
            || name == self.singular
            || name == self.kind.to_lowercase()
            || self.short_names.contains(&name);
        is_name && (rest.is_empty() || rest == group || rest == format!("{version}.{group}"))
    }
}

/// Where a list of kinds is asked for, and in which form.
pub(super) const PATHS: [&str; 2] = ["/api", "/apis"];
pub(super) const ACCEPT: &str =
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// The kinds of such a list, those that are preferred first.
pub(super) fn parse(list: &Value) -> Vec<Resource> {
    let items = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut found = Vec::new();
    for group in items(&list["items"]) {
        for version in items(&group["versions"]) {
            for resource in items(&version["resources"]) {
                found.push(Resource {
                    group: text(&group["metadata"]["name"]),
                    version: text(&version["version"]),
                    kind: text(&resource["responseKind"]["kind"]),
                    plural: text(&resource["resource"]),
                    singular: text(&resource["singularResource"]),
                    short_names: items(&resource["shortNames"]).iter().map(text).collect(),
                    is_namespaced: resource["scope"] == "Namespaced",
                    verbs: items(&resource["verbs"]).iter().map(text).collect(),
                });
            }
        }
    }
    found
}

/// The kind that a word of kubectl means.
pub(super) fn by_word<'a>(all: &'a [Resource], word: &str) -> Option<&'a Resource> {
    all.iter().find(|resource| resource.is_called(word))
}

/// The kind of an object.
pub(super) fn of_object<'a>(all: &'a [Resource], object: &Value) -> Option<&'a Resource> {
    let (version, kind) = (object["apiVersion"].as_str()?, object["kind"].as_str()?);
    all.iter().find(|resource| resource.kind == kind && resource.api_version() == version)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn list() -> Value {
        let resource = |kind: &str, plural: &str, short: &[&str], scope: &str| {
            json!({"resource": plural, "responseKind": {"kind": kind}, "scope": scope,
                "singularResource": kind.to_lowercase(), "shortNames": short,
                "verbs": ["list", "get"]})
        };
        let group = |name: &str, version: &str, resources: &[Value]| {
            json!({"metadata": {"name": name},
                "versions": [{"version": version, "resources": resources}]})
        };
        json!({"items": [
            group("", "v1", &[resource("Node", "nodes", &["no"], "Cluster")]),
            group("batch", "v1", &[resource("Job", "jobs", &[], "Namespaced")]),
            group("berth.dev", "v1alpha1", &[resource("Job", "jobs", &["bj"], "Namespaced")]),
        ]})
    }

    #[test]
    fn a_kind_is_found_by_every_word_that_kubectl_takes() {
        let all = parse(&list());
        let path = |word: &str| by_word(&all, word).map(|found| found.path(Some("x")));
        for word in ["no", "node", "nodes", "Node"] {
            assert_eq!(path(word).as_deref(), Some("/api/v1/nodes"), "{word}");
        }
        for word in ["job", "jobs", "jobs.batch", "jobs.v1.batch"] {
            assert_eq!(path(word).as_deref(), Some("/apis/batch/v1/namespaces/x/jobs"), "{word}");
        }
        let ours = "/apis/berth.dev/v1alpha1/namespaces/x/jobs";
        for word in ["bj", "jobs.berth.dev", "Job.v1alpha1.berth.dev"] {
            assert_eq!(path(word).as_deref(), Some(ours), "{word}");
        }
        assert_eq!(path("queues"), None);
        assert_eq!(path("jobs.v2.batch"), None);
    }

    #[test]
    fn the_kind_of_an_object_is_that_of_its_version() {
        let all = parse(&list());
        let object = json!({"apiVersion": "berth.dev/v1alpha1", "kind": "Job"});
        assert_eq!(of_object(&all, &object).map(|found| &*found.group), Some("berth.dev"));
        let object = json!({"apiVersion": "v1", "kind": "Job"});
        assert_eq!(of_object(&all, &object), None);
    }
}
