//! Templates, schedules, the audit log, files that are applied, and the server itself.

use super::{At, Id};
use crate::access::Permission;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::{IntoParams, ToSchema};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Template {
    pub name: String,
    pub team: String,
    pub by: String,
    pub created: At,
    /// The job file, as YAML.
    pub file: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TemplateSet {
    /// One's default team where left out.
    #[serde(default)]
    pub team: Option<String>,
    pub file: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Schedule {
    pub id: String,
    pub name: String,
    pub user: String,
    pub team: String,
    pub cron: String,
    /// Such as `+02:00`, or `UTC`.
    pub timezone: String,
    pub paused: bool,
    /// Why the server paused it, where it was not a user who did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    pub next: Option<At>,
    pub last_job: Option<Id>,
    pub file: String,
}

/// One change that someone made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AuditRow {
    pub seq: u64,
    pub at: At,
    pub who: String,
    /// The token that was used.
    pub token: Option<String>,
    /// The address it came from.
    pub from: String,
    pub method: String,
    pub what: String,
    pub target: String,
    pub outcome: String,
    pub detail: String,
    /// The hash of the row before, and its own over that and all its fields.
    pub prev: String,
    pub hash: String,
    /// The id of the key that signed it; none in rows from before there were keys.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub key: String,
    /// What users, members and tokens that changed with it are from then on, as digests in JSON.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub seals: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AuditList {
    pub rows: Vec<AuditRow>,
    pub next: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, IntoParams)]
#[serde(default)]
#[into_params(parameter_in = Query)]
pub struct AuditQuery {
    pub who: Option<String>,
    pub what: Option<String>,
    /// The changed entity, such as `model nlp/chat`.
    pub target: Option<String>,
    #[param(value_type = Option<At>)]
    pub since: Option<At>,
    /// Refused requests only, or all but those.
    pub refused: Option<bool>,
    /// At most 1000; 100 where left out.
    pub limit: Option<u32>,
    pub cursor: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AuditVerified {
    pub whole: bool,
    pub rows: u64,
    /// The hash of the last row: keep it elsewhere to notice a log that was cut off.
    pub head: String,
    /// The first row that does not follow from the ones before.
    pub broken_at: Option<u64>,
    /// What is wrong with that row.
    #[serde(default)]
    pub why: Option<String>,
    /// The first row that is signed. It seals those before it.
    #[serde(default)]
    pub keyed_from: Option<u64>,
    /// The id of the key that signs now.
    #[serde(default)]
    pub key: Option<String>,
    /// Users, members, tokens, sessions and identities that were changed without the server.
    #[serde(default)]
    pub rights: Vec<String>,
    /// What the server found earlier and wrote into the log.
    #[serde(default)]
    pub warnings: Vec<String>,
}

/// Another key signs the audit log from now on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AuditKeyRotated {
    /// The id of the key that signed until now.
    pub old: Option<String>,
    pub new: String,
}

/// Every knob with its value, as docs/policy.md lists them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Policy {
    pub version: u64,
    pub knobs: BTreeMap<String, String>,
    /// Those that are not as they come.
    pub changed: Vec<String>,
}

/// Documents to be made true, as YAML with one document or several, each with its `kind`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ApplyRequest {
    pub documents: String,
    /// Teams, queues and projects that are in no document are removed.
    #[serde(default)]
    pub prune: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum DocumentKind {
    Team,
    Queue,
    Policy,
    Budget,
    Classes,
    Prices,
    Project,
    /// Where messages go.
    Notify,
}

impl DocumentKind {
    pub const ALL: [DocumentKind; 8] = [
        DocumentKind::Team,
        DocumentKind::Queue,
        DocumentKind::Policy,
        DocumentKind::Budget,
        DocumentKind::Classes,
        DocumentKind::Prices,
        DocumentKind::Project,
        DocumentKind::Notify,
    ];

    pub const fn word(self) -> &'static str {
        match self {
            DocumentKind::Team => "team",
            DocumentKind::Queue => "queue",
            DocumentKind::Policy => "policy",
            DocumentKind::Budget => "budget",
            DocumentKind::Classes => "classes",
            DocumentKind::Prices => "prices",
            DocumentKind::Project => "project",
            DocumentKind::Notify => "notify",
        }
    }

    /// What it takes to apply one, besides what the route takes.
    pub const fn permission(self) -> Permission {
        match self {
            DocumentKind::Team => Permission::TeamsManage,
            DocumentKind::Policy => Permission::PolicyManage,
            DocumentKind::Budget => Permission::BudgetsManage,
            DocumentKind::Project => Permission::ProjectsManage,
            DocumentKind::Notify => Permission::NotifyManage,
            DocumentKind::Queue | DocumentKind::Classes | DocumentKind::Prices => {
                Permission::QueuesManage
            }
        }
    }
}

/// What files would change, or have changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Diff {
    pub changes: Vec<Change>,
    /// Warnings about values that Berth accepts but cannot provide in full, such as quotas beyond that of
    /// the parent queue.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// Whether they were made.
    pub applied: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Change {
    pub kind: DocumentKind,
    pub name: String,
    /// The field, such as `quota.gpu`; empty where the whole is added or removed.
    pub path: String,
    pub change: ChangeKind,
    pub old: Option<String>,
    pub new: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChangeKind {
    Add,
    Change,
    Remove,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Health {
    pub ok: bool,
    /// Parts and what is wrong with them; empty text: nothing.
    pub parts: BTreeMap<String, String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Version {
    pub version: String,
    /// The API's, `v1`.
    pub api: String,
}

/// The live state as a world file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WorldText {
    pub at: At,
    /// Of the last event in it.
    pub seq: u64,
    pub text: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BackupDone {
    /// Where it lies on the server's machine.
    pub path: String,
    pub bytes: u64,
    pub seq: u64,
}

/// One setting, and who set it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ConfigEntry {
    pub key: String,
    /// `(hidden)` for what is confidential.
    pub value: String,
    /// Such as `flag`, `BERTH_LISTEN`, a file, or `default`.
    pub source: String,
}
