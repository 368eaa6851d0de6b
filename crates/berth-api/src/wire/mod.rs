//! The types of requests and answers.
//!
//! They are counterparts of the model's types and not the same: the wire may keep an old name when
//! the model has found a better one.

mod admin;
mod cluster;
mod event;
mod figures;
mod identity;
mod job;
mod money;
mod plan;
mod shell;
mod value;
mod volume;
mod why;

pub use admin::{
    ApplyRequest, AuditKeyRotated, AuditList, AuditQuery, AuditRow, AuditVerified, BackupDone,
    Change, ChangeKind, ConfigEntry, Diff, DocumentKind, Health, Policy, Schedule, Template,
    TemplateSet, Version, WorldText,
};
pub use berth_model::{Exit, ExitKind, JobKind, JobState};
pub use cluster::{
    Gpu, GpuCheck, GpuFigure, GpuHolder, GpuResume, Node, NodeIsolation, NodeState, Queue,
    QueueLine, Share,
};
pub use event::{Event, EventKind, EventQuery, LogChunk, LogQuery, LogStream};
pub use figures::{
    FigureAdvice, FigureLine, FigureQuery, FigureSummary, GpuFigures, JobFigures, NodeFigures,
    TaskFigures,
};
pub use identity::{
    Me, Member, MemberSet, Membership, Project, Secret, SecretSet, Team, Token, TokenCreate,
    TokenCreated, User, UserCreate,
};
pub use job::{
    Attempt, Job, JobChange, JobClone, JobList, JobQuery, JobStop, JobSubmitted, Lease,
    SubmitQuery, Warning,
};
pub use money::{
    Budget, BudgetAction, BudgetPeriod, BudgetSet, CostGroup, CostKey, CostQuery, CostReport,
};
pub use plan::{Placement, Plan};
pub use shell::{ShellAsk, ShellTell};
pub use value::{At, Id};
pub use volume::{Volume, VolumeDelete, VolumeQuery};
pub use why::{Blocker, Eta, Sooner, Why};

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// All there are: lists that cannot grow long come whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Items<T: ToSchema> {
    pub items: Vec<T>,
}
