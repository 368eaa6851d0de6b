//! Checks once at the start whether the service account has the permissions it needs. The table is
//! the one from which the Helm chart makes its roles.

use crate::compat::Peer;
use crate::options::Options;
use berth_kube::{AllowedRules, Api, Error, Permission};
use futures_util::future::join_all;
use futures_util::{StreamExt, stream};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

const TABLE: &str = include_str!("../../../deploy/helm/berth/files/rights.yaml");
/// Questions that are asked at once.
const MAX_CONCURRENT_REVIEWS: usize = 16;
/// A namespace that does not exist: what Berth may do there it may do in every namespace.
const UNUSED_NAMESPACE: &str = "berth-asks-what-it-may-do-everywhere";
/// What the server can begin without is asked for when it has begun, and not among the first
/// bindings of a full cluster.
const OPTIONAL_REVIEW_DELAY: Duration = Duration::from_secs(5);

#[derive(Debug, Deserialize)]
struct Table {
    /// In every namespace.
    cluster: Vec<Row>,
    /// In the namespace this runs in.
    own: Vec<Row>,
    /// In the namespace of the Lease.
    lease: Vec<Row>,
    /// In the namespace of the pods that hold shared GPUs.
    reservations: Vec<Row>,
}

#[derive(Debug, Deserialize)]
struct Row {
    #[serde(default)]
    group: String,
    resources: Vec<String>,
    verbs: Vec<String>,
    r#for: String,
    /// Nothing can be begun without it.
    #[serde(default)]
    must: bool,
    /// What it is given for, where that can be off.
    #[serde(default)]
    when: Option<String>,
}

/// One right to ask about.
#[derive(Debug)]
struct Asked {
    right: Permission,
    namespace: Option<String>,
    purpose: String,
    must: bool,
}

/// Says which rights are missing. That is an error where nothing can be begun without them; what
/// needs others waits until they are given, and nothing waits for these to be looked at.
pub async fn check(api: &Api, options: &Options) -> berth_kube::Result<()> {
    let own = api.namespace();
    let places = Places {
        own,
        lease: options.lease.namespace.as_deref().unwrap_or(own),
        reservations: &options.reservation_namespace,
    };
    let asked = asked(places, &features(options));
    let (served, asked) = tokio::join!(api.groups(), not_listed(api, asked));
    // Where that is not known, all are asked for.
    let is_served = |asked: &Asked| match &served {
        Ok(served) => asked.right.group.is_empty() || served.contains(&asked.right.group),
        Err(_) => true,
    };
    let (must, may): (Vec<Asked>, Vec<Asked>) =
        asked.into_iter().filter(is_served).partition(|asked| asked.must);
    if let Some((user, named)) = missing(api, must, MAX_CONCURRENT_REVIEWS).await {
        // An admin who grants these can grant the optional ones at the same time, so log them, too.
        missing(api, may, MAX_CONCURRENT_REVIEWS).await;
        return Err(Error::MissingPermissions { user, missing: named });
    }
    let api = api.clone();
    tokio::spawn(async move {
        tokio::time::sleep(OPTIONAL_REVIEW_DELAY).await;
        missing(&api, may, 1).await;
    });
    Ok(())
}

/// Those that the API server does not list among what we may do. It may not know all of that, so
/// these are asked for one by one; where all is well there are none, and the start is quick.
async fn not_listed(api: &Api, mut asked: Vec<Asked>) -> Vec<Asked> {
    let place =
        |asked: &Asked| asked.namespace.clone().unwrap_or_else(|| UNUSED_NAMESPACE.to_owned());
    let places: BTreeSet<String> = asked.iter().map(place).collect();
    let listed = join_all(places.iter().map(|place| api.allowed_rules(place))).await;
    let listed: BTreeMap<String, AllowedRules> = places
        .into_iter()
        .zip(listed)
        .filter_map(|(place, rules)| Some((place, rules.ok()?)))
        .collect();
    asked.retain(|asked| !listed.get(&place(asked)).is_some_and(|rules| rules.allow(&asked.right)));
    asked
}

/// The permissions that Berth lacks, and the name of its user. Logs each of them.
async fn missing(api: &Api, asked: Vec<Asked>, at_once: usize) -> Option<(String, String)> {
    let missing = stream::iter(asked)
        .map(|asked| async move {
            let allowed = api.is_allowed(&asked.right, asked.namespace.as_deref()).await;
            // Where the review itself fails, the first request that is denied reports it.
            (!allowed.unwrap_or(true)).then_some(asked)
        })
        .buffered(at_once)
        .filter_map(std::future::ready)
        .collect::<Vec<Asked>>()
        .await;
    if missing.is_empty() {
        return None;
    }
    let user = api.current_user().await.unwrap_or_else(|_| "the account this runs as".to_owned());
    for Asked { right, purpose, .. } in &missing {
        tracing::warn!(
            "{user} may not {right}, which is for {purpose}. What needs it waits until the \
             account has the roles of the Helm chart"
        );
    }
    let missing = missing.iter().map(|asked| format!("{} (for {})", asked.right, asked.purpose));
    Some((user, missing.collect::<Vec<String>>().join(", ")))
}

/// What is on, by the words that the table has under `when`.
fn features(options: &Options) -> Vec<&'static str> {
    let stands_in = |peer| options.compat.is_for(peer);
    let all = [
        ("replicas", options.publish.is_some()),
        ("jobs", !options.jobs.are_off),
        ("gates", !options.compat.gates().is_empty()),
        ("kai", stands_in(Peer::Kai)),
        ("kueue", stands_in(Peer::Kueue)),
        ("volcano", stands_in(Peer::Volcano)),
    ];
    all.into_iter().filter(|(_, is_on)| *is_on).map(|(name, _)| name).collect()
}

/// The namespaces in which rights are asked for.
#[derive(Clone, Copy)]
struct Places<'a> {
    own: &'a str,
    lease: &'a str,
    reservations: &'a str,
}

fn asked(places: Places<'_>, features: &[&str]) -> Vec<Asked> {
    let table = match serde_saphyr::from_str::<Table>(TABLE) {
        Ok(table) => table,
        Err(error) => {
            tracing::error!(%error, "the table of rights cannot be read, so none is looked at");
            return Vec::new();
        }
    };
    let cluster = table.cluster.into_iter().map(|row| (row, None));
    let within = |rows: Vec<Row>, place: &str| {
        let place = place.to_owned();
        rows.into_iter().map(move |row| (row, Some(place.clone())))
    };
    let own = within(table.own, places.own).chain(within(table.lease, places.lease));
    let reserved = within(table.reservations, places.reservations);
    let is_on = |row: &Row| row.when.as_deref().is_none_or(|when| features.contains(&when));
    let rows = cluster.chain(own).chain(reserved).filter(|(row, _)| is_on(row));
    rows.flat_map(|(row, namespace)| {
        let Row { group, resources, verbs, r#for: purpose, must, .. } = row;
        let each = |resource: String| {
            let (group, namespace, purpose) = (&group, &namespace, &purpose);
            verbs.iter().map(move |verb| Asked {
                right: Permission::new(verb, group, &resource),
                namespace: namespace.clone(),
                purpose: purpose.clone(),
                must,
            })
        };
        resources.into_iter().flat_map(each).collect::<Vec<Asked>>()
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: Places<'static> = Places { own: "here", lease: "leases", reservations: "there" };

    #[test]
    fn rights_on_the_lease_are_asked_for_where_the_lease_is() {
        let asked = asked(HERE, &["replicas"]);
        let of = |resource: &str| -> BTreeSet<&str> {
            let asked = asked.iter().filter(|one| one.right.resource == resource);
            asked.filter_map(|one| one.namespace.as_deref()).collect()
        };
        assert_eq!(of("leases"), ["leases"].into());
        assert_eq!(of("endpointslices"), ["here"].into());
    }

    #[test]
    fn every_right_says_what_it_is_for_and_is_there_once() {
        let slices = |features: &[&str]| {
            let mut asked = asked(HERE, features).into_iter();
            asked.any(|one| one.right.resource == "endpointslices")
        };
        assert!(slices(&["replicas"]) && !slices(&[]));
        let all = ["replicas", "jobs", "gates", "kai", "kueue", "volcano"];
        let asked = asked(HERE, &all);
        assert!(asked.iter().any(|one| one.right.to_string() == "create pods/binding"));
        assert!(asked.iter().all(|one| !one.purpose.is_empty()));
        let mut all: Vec<_> = asked.iter().map(|one| (&one.right, &one.namespace)).collect();
        all.sort();
        let before = all.len();
        all.dedup();
        assert_eq!(all.len(), before, "{all:?}");
    }

    #[test]
    fn without_jobs_of_its_own_berth_makes_pods_in_one_namespace_alone() {
        let asked = asked(HERE, &["gates"]);
        let where_to = |right: &str| -> Vec<Option<&str>> {
            let asked = asked.iter().filter(|one| one.right.to_string() == right);
            asked.map(|one| one.namespace.as_deref()).collect()
        };
        assert_eq!(where_to("create pods"), [Some("there")]);
        assert_eq!(where_to("patch pods"), [None]);
        for right in ["create pods/exec", "create secrets", "create namespaces"] {
            assert!(where_to(right).is_empty(), "{right}");
        }
    }
}
