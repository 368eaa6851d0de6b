//! What the account that this runs as may do.

use crate::client::{Api, decode};
use crate::error::Result;
use serde::Deserialize;
use serde_json::json;
use std::fmt;

/// One thing that somebody may do to one kind of object.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Right {
    pub verb: String,
    pub group: String,
    /// With the part of the object behind a slash, as roles have it.
    pub resource: String,
}

impl Right {
    pub fn new(verb: &str, group: &str, resource: &str) -> Right {
        Right { verb: verb.to_owned(), group: group.to_owned(), resource: resource.to_owned() }
    }

    /// The right that a refusal names: one request may need several.
    pub fn of_refusal(message: &str) -> Option<Right> {
        let (_, rest) = message.split_once(" cannot ")?;
        let (verb, rest) = rest.split_once(" resource \"")?;
        let (resource, rest) = rest.split_once("\" in API group \"")?;
        let (group, _) = rest.split_once('"')?;
        Some(Right::new(verb, group, resource))
    }
}

/// As one would ask `kubectl auth can-i`.
impl fmt::Display for Right {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Right { verb, group, resource } = self;
        match (group.as_str(), resource.split_once('/')) {
            ("", _) => write!(f, "{verb} {resource}"),
            (group, Some((kind, part))) => write!(f, "{verb} {kind}.{group}/{part}"),
            (group, None) => write!(f, "{verb} {resource}.{group}"),
        }
    }
}

#[derive(Deserialize)]
struct Review {
    status: Reviewed,
}

#[derive(Deserialize)]
struct Reviewed {
    #[serde(default)]
    allowed: bool,
}

#[derive(Deserialize)]
struct RulesReview {
    status: Rules,
}

/// What we may do in one namespace, as the API server lists it. There may be more that it cannot
/// list.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Rules {
    resource_rules: Vec<Rule>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Rule {
    verbs: Vec<String>,
    api_groups: Vec<String>,
    resources: Vec<String>,
    /// The rule is about these alone.
    resource_names: Vec<String>,
}

impl Rules {
    pub fn allow(&self, right: &Right) -> bool {
        self.resource_rules.iter().any(|rule| rule.allows(right))
    }
}

impl Rule {
    fn allows(&self, right: &Right) -> bool {
        let has = |all: &[String], one: &str| all.iter().any(|any| any == one || any == "*");
        let of_part = right.resource.split_once('/').map(|(_, part)| format!("*/{part}"));
        self.resource_names.is_empty()
            && has(&self.verbs, &right.verb)
            && has(&self.api_groups, &right.group)
            && (has(&self.resources, &right.resource)
                || of_part.is_some_and(|part| self.resources.contains(&part)))
    }
}

#[derive(Deserialize)]
struct Who {
    status: WhoStatus,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WhoStatus {
    user_info: UserInfo,
}

#[derive(Deserialize)]
struct UserInfo {
    username: String,
}

impl Api {
    /// Whether we have a right: in one namespace, or in all of them.
    pub async fn may(&self, right: &Right, namespace: Option<&str>) -> Result<bool> {
        const PATH: &str = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
        let (resource, part) = right.resource.split_once('/').unwrap_or((&right.resource, ""));
        let review = json!({
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": { "resourceAttributes": {
                "verb": right.verb,
                "group": right.group,
                "resource": resource,
                "subresource": part,
                "namespace": namespace.unwrap_or_default(),
            } },
        });
        let answer = self.post(PATH, &review).await?;
        Ok(decode::<Review>(PATH, &answer)?.status.allowed)
    }

    /// What we may do in a namespace, all at once. One that is not there tells what we may do
    /// everywhere.
    pub async fn rules(&self, namespace: &str) -> Result<Rules> {
        const PATH: &str = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews";
        let review = json!({
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectRulesReview",
            "spec": { "namespace": namespace },
        });
        let answer = self.post(PATH, &review).await?;
        Ok(decode::<RulesReview>(PATH, &answer)?.status)
    }

    /// Who we are to the API server.
    pub async fn user(&self) -> Result<String> {
        const PATH: &str = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
        let review =
            json!({ "apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview" });
        let answer = self.post(PATH, &review).await?;
        Ok(decode::<Who>(PATH, &answer)?.status.user_info.username)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_allows_what_it_names_or_means_by_a_star_and_not_what_it_says_of_some_objects() {
        let rules = |rule: serde_json::Value| -> Rules {
            serde_json::from_value(json!({ "resourceRules": [rule], "incomplete": false })).unwrap()
        };
        let bind = Right::new("create", "", "pods/binding");
        for (verbs, groups, resources, allows) in [
            ("create", "", "pods/binding", true),
            ("*", "*", "*", true),
            ("create", "", "*/binding", true),
            ("create", "", "pods", false),
            ("get", "", "pods/binding", false),
            ("create", "apps", "pods/binding", false),
        ] {
            let rule = json!({ "verbs": [verbs], "apiGroups": [groups], "resources": [resources] });
            assert_eq!(rules(rule.clone()).allow(&bind), allows, "{rule}");
            let mut some = rule;
            some["resourceNames"] = json!(["one"]);
            assert!(!rules(some).allow(&bind));
        }
    }

    #[test]
    fn a_refusal_names_the_right_it_is_about() {
        let cases = [
            ("create", "namespaces", "", "create namespaces"),
            ("create", "pods/binding", "", "create pods/binding"),
            ("update", "leases", "coordination.k8s.io", "update leases.coordination.k8s.io"),
            ("patch", "queues/status", "berth.dev", "patch queues.berth.dev/status"),
        ];
        for (verb, resource, group, right) in cases {
            let message = format!(
                "x \"a\" is forbidden: User \"b\" cannot {verb} resource \"{resource}\" in API \
                 group \"{group}\" at the cluster scope"
            );
            let found = Right::of_refusal(&message).map(|right| right.to_string());
            assert_eq!(found.as_deref(), Some(right));
        }
        assert_eq!(Right::of_refusal("pods \"a\" is forbidden: violates PodSecurity"), None);
    }
}
