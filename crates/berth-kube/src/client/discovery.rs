//! Which kinds an API server serves. Most of those we know are of others and not installed
//! everywhere, or installed later.

use super::api::Api;
use super::error::Result;
use futures_util::future::join_all;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};

/// A kind we would follow if it were served. Its version is the server's to choose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct GroupResource {
    pub group: &'static str,
    /// As in a path: lower case, in the plural.
    pub plural: &'static str,
}

#[derive(Deserialize)]
struct Groups {
    #[serde(default)]
    groups: Vec<Group>,
}

#[derive(Deserialize)]
struct Group {
    name: String,
    /// The one that is preferred comes first.
    versions: Vec<Version>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Version {
    group_version: String,
}

#[derive(Deserialize)]
struct Resources {
    #[serde(default)]
    resources: Vec<Resource>,
}

#[derive(Deserialize)]
struct Resource {
    name: String,
}

impl Api {
    /// The groups of which anything is served.
    pub async fn groups(&self) -> Result<BTreeSet<String>> {
        let all: Groups = self.get("/apis").await?;
        Ok(all.groups.into_iter().map(|group| group.name).collect())
    }

    /// The paths of those that are served, in the newest version that has them.
    pub async fn served(
        &self,
        wanted: &[GroupResource],
    ) -> Result<BTreeMap<GroupResource, String>> {
        let all: Groups = self.get("/apis").await?;
        let groups = all.groups.into_iter().map(|group| self.served_of(group, wanted));
        let mut served = BTreeMap::new();
        for found in join_all(groups).await {
            served.append(&mut found?);
        }
        Ok(served)
    }

    async fn served_of(
        &self,
        group: Group,
        wanted: &[GroupResource],
    ) -> Result<BTreeMap<GroupResource, String>> {
        let mut served = BTreeMap::new();
        let mut missing: Vec<GroupResource> =
            wanted.iter().filter(|wanted| wanted.group == group.name).copied().collect();
        for Version { group_version } in group.versions {
            if missing.is_empty() {
                break;
            }
            let found: Resources = match self.get(&format!("/apis/{group_version}")).await {
                // It went away between the two questions.
                Err(error) if error.is_not_found() => continue,
                found => found?,
            };
            missing.retain(|wanted| {
                let is_there = found.resources.iter().any(|one| one.name == wanted.plural);
                if is_there {
                    served.insert(*wanted, format!("/apis/{group_version}/{}", wanted.plural));
                }
                !is_there
            });
        }
        Ok(served)
    }
}
