//! A Kubernetes cluster, as kubectl sees it: it finds the cluster and the rights as people do.

use super::Check;
use super::machine::on_path;
use std::path::Path;
use std::process::Command;

/// What the server has to do there, with this user's rights.
const NEEDED: [(&str, &str); 8] = [
    ("list", "nodes"),
    ("watch", "pods"),
    ("create", "pods/binding"),
    ("delete", "pods"),
    ("patch", "pods/status"),
    ("create", "events"),
    ("update", "leases.coordination.k8s.io"),
    ("list", "resourcequotas"),
];

pub fn checks(kubeconfig: Option<&Path>) -> Vec<Check> {
    if !on_path("kubectl") {
        let next = "Install kubectl, or run this where it is.";
        return vec![Check::failed("kubectl", "it is not on the PATH", next)];
    }
    let kubectl = |args: &[&str]| ask(kubeconfig, args);
    let version = kubectl(&["version", "-o", "json"]);
    let mut checks = vec![reached(&version)];
    if version.is_err() {
        return checks;
    }
    checks.push(crds(&kubectl(&["get", "crd", "-o", "name"]), &own_crds()));
    checks.push(rights(&|verb, what| {
        kubectl(&["auth", "can-i", verb, what, "--all-namespaces"]).is_ok()
    }));
    checks
}

/// What kubectl printed, or what it complained about.
fn ask(kubeconfig: Option<&Path>, args: &[&str]) -> Result<String, String> {
    let mut command = Command::new("kubectl");
    if let Some(path) = kubeconfig {
        command.arg("--kubeconfig").arg(path);
    }
    let output = command.args(["--request-timeout", "10s"]).args(args).output();
    let output = output.map_err(|error| format!("kubectl: {error}"))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    match output.status.success() {
        true => Ok(text(&output.stdout)),
        false => Err(text(&output.stderr).lines().last().unwrap_or("it failed").to_owned()),
    }
}

fn reached(version: &Result<String, String>) -> Check {
    const NAME: &str = "kubernetes";
    let next = "Choose the cluster with --kubeconfig, KUBECONFIG or `kubectl config use-context`.";
    match version {
        Err(why) => Check::failed(NAME, why.clone(), next),
        Ok(json) => {
            let version: serde_json::Value = serde_json::from_str(json).unwrap_or_default();
            match version["serverVersion"]["gitVersion"].as_str() {
                Some(version) => Check::ok(NAME, version),
                None => Check::failed(NAME, "the API server does not say its version", next),
            }
        }
    }
}

/// Names of the definitions that `berth kube crds` prints.
fn own_crds() -> Vec<String> {
    let all = berth_server::crds();
    let names = all.lines().filter_map(|line| line.trim().strip_prefix("name: "));
    let full = names.filter(|name| name.contains(".berth."));
    full.map(|name| name.trim_matches('"').to_owned()).collect()
}

fn crds(found: &Result<String, String>, own: &[String]) -> Check {
    const NAME: &str = "crds";
    let there = match found {
        Ok(there) => there,
        Err(why) => {
            let next = "Use an account that may list CustomResourceDefinitions.";
            return Check::warning(NAME, why.clone(), next);
        }
    };
    let has = |name: &&String| there.lines().any(|line| line.ends_with(&format!("/{name}")));
    let missing: Vec<&str> = own.iter().filter(|name| !has(name)).map(String::as_str).collect();
    match missing.is_empty() {
        true => Check::ok(NAME, format!("all {} are installed", own.len())),
        false => Check::warning(
            NAME,
            format!("missing: {}", missing.join(", ")),
            "Install them: `berth kube crds | kubectl apply -f -`.",
        ),
    }
}

fn rights(may: &dyn Fn(&str, &str) -> bool) -> Check {
    let missing: Vec<String> = NEEDED
        .iter()
        .filter(|(verb, what)| !may(verb, what))
        .map(|(verb, what)| format!("{verb} {what}"))
        .collect();
    match missing.is_empty() {
        true => Check::ok("rights in kubernetes", "this account may do what the server does"),
        false => Check::warning(
            "rights in kubernetes",
            format!("this account may not: {}", missing.join(", ")),
            "Run the server with the ServiceAccount of the Helm chart, which may.",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Status;
    use super::*;

    #[test]
    fn a_cluster_that_does_not_answer_fails_with_what_to_do() {
        let check = reached(&Err("connection refused".into()));
        assert_eq!((check.status, check.detail.as_str()), (Status::Failed, "connection refused"));
        let version = r#"{"serverVersion": {"gitVersion": "v1.33.1"}}"#;
        assert_eq!(reached(&Ok(version.into())).detail, "v1.33.1");
    }

    #[test]
    fn missing_definitions_and_rights_are_named() {
        let own = own_crds();
        assert!(!own.is_empty(), "names are read from the definitions");
        let all: Vec<String> = own
            .iter()
            .map(|name| format!("customresourcedefinition.apiextensions.k8s.io/{name}"))
            .collect();
        assert_eq!(crds(&Ok(all.join("\n")), &own).status, Status::Ok);
        let none = crds(&Ok(String::new()), &own);
        assert!(none.detail.contains(&own[0]), "{}", none.detail);
        assert_eq!(rights(&|_, _| true).status, Status::Ok);
        let some = rights(&|verb, _| verb != "patch");
        assert_eq!(some.detail, "this account may not: patch pods/status");
    }
}
