//! RBAC permissions: the verbs that an account may use on a kind of object.

use serde::Deserialize;
use std::fmt;

/// One verb that a subject may use on one kind of object.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Permission {
    pub verb: String,
    pub group: String,
    /// With the part of the object behind a slash, as roles have it.
    pub resource: String,
}

impl Permission {
    pub fn new(verb: &str, group: &str, resource: &str) -> Permission {
        Permission { verb: verb.to_owned(), group: group.to_owned(), resource: resource.to_owned() }
    }

    /// The permission that a refusal names: one request may need several.
    pub fn from_forbidden_message(message: &str) -> Option<Permission> {
        let (_, rest) = message.split_once(" cannot ")?;
        let (verb, rest) = rest.split_once(" resource \"")?;
        let (resource, rest) = rest.split_once("\" in API group \"")?;
        let (group, _) = rest.split_once('"')?;
        Some(Permission::new(verb, group, resource))
    }
}

/// As one would ask `kubectl auth can-i`.
impl fmt::Display for Permission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Permission { verb, group, resource } = self;
        match (group.as_str(), resource.split_once('/')) {
            ("", _) => write!(f, "{verb} {resource}"),
            (group, Some((kind, part))) => write!(f, "{verb} {kind}.{group}/{part}"),
            (group, None) => write!(f, "{verb} {resource}.{group}"),
        }
    }
}

/// What we may do in one namespace, as the API server lists it. There may be more that it cannot
/// list.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AllowedRules {
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

impl AllowedRules {
    pub fn allow(&self, permission: &Permission) -> bool {
        self.resource_rules.iter().any(|rule| rule.allows(permission))
    }
}

impl Rule {
    fn allows(&self, permission: &Permission) -> bool {
        let has = |all: &[String], one: &str| all.iter().any(|any| any == one || any == "*");
        let of_part = permission.resource.split_once('/').map(|(_, part)| format!("*/{part}"));
        self.resource_names.is_empty()
            && has(&self.verbs, &permission.verb)
            && has(&self.api_groups, &permission.group)
            && (has(&self.resources, &permission.resource)
                || of_part.is_some_and(|part| self.resources.contains(&part)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_rule_allows_what_it_names_or_means_by_a_star_and_not_what_it_says_of_some_objects() {
        let rules = |rule: serde_json::Value| -> AllowedRules {
            serde_json::from_value(json!({ "resourceRules": [rule], "incomplete": false })).unwrap()
        };
        let bind = Permission::new("create", "", "pods/binding");
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
        for (verb, resource, group, permission) in cases {
            let message = format!(
                "x \"a\" is forbidden: User \"b\" cannot {verb} resource \"{resource}\" in API \
                 group \"{group}\" at the cluster scope"
            );
            let found = Permission::from_forbidden_message(&message)
                .map(|permission| permission.to_string());
            assert_eq!(found.as_deref(), Some(permission));
        }
        assert_eq!(
            Permission::from_forbidden_message("pods \"a\" is forbidden: violates PodSecurity"),
            None
        );
    }
}
