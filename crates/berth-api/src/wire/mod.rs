//! The types of requests and answers.
//!
//! They are counterparts of the model's types and not the same: the wire may keep an old name when
//! the model has found a better one.

mod admin;
mod cluster;
mod code;
mod data;
mod event;
mod figures;
mod files;
mod identity;
mod job;
mod lineage;
mod money;
mod plan;
mod returns;
mod runs;
mod session;
mod shares;
mod shell;
mod timeline;
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
    Gpu, GpuCheck, GpuFigure, GpuHolder, GpuResume, Node, NodeChange, NodeIsolation, NodeState,
    Queue, QueueLine, Share,
};
pub use code::CodeSnapshot;
pub use data::{
    DataAsk, DataChanges, DataClean, DataCleaned, DataDiff, DataDiffQuery, DataFile, DataFiles,
    DataFilesQuery, DataMake, DataMissing, DataQuery, DataVersion, Storage, StorageSet,
};
pub use event::{
    Event, EventKind, EventQuery, LogChunk, LogMatch, LogMatches, LogQuery, LogSearchQuery,
    LogStream,
};
pub use figures::{
    ClusterFigureQuery, ClusterFigures, FigureAdvice, FigureLine, FigureQuery, FigureSummary,
    GpuFigures, GpuRow, JobFigures, NodeFigures, TaskFigures,
};
pub use files::{FileKind, JobFile, JobFileList, JobFileQuery};
pub use identity::{
    Me, Member, MemberSet, Membership, Project, Removal, Secret, SecretSet, Team, Token,
    TokenCreate, TokenCreated, User, UserCreate,
};
pub use job::{
    Attempt, IncompleteGang, Job, JobChange, JobClone, JobList, JobQuery, JobStop, JobSubmitted,
    Lease, SubmitQuery, Warning,
};
pub use lineage::{
    Lineage, LineageDetails, LineageEdge, LineageKind, LineageLink, LineageNode, LineageQuery,
    LineageWay, Recipe, RecipeCode, RecipeData, RecipeDifference, RecipeQuery, RecipeSource,
};
pub use money::{
    Budget, BudgetAction, BudgetForecast, BudgetForecastPoint, BudgetPeriod, BudgetPoint,
    BudgetSet, CostGroup, CostIdle, CostIdleQuery, CostKey, CostLine, CostLines, CostPoint,
    CostQuery, CostReport, CostRowsQuery, CostSeries, CostSeriesQuery, CostStep, IdleCause,
    IdleHolder,
};
pub use plan::{Placement, Plan};
pub use returns::{BetterValues, Return, Returns, ReturnsBy, ReturnsQuery};
pub use runs::{RunsClean, RunsCleaned};
pub use session::{
    DeviceAnswer, DeviceAsk, DevicePoll, DeviceStart, DeviceStarted, DeviceState, DeviceToken,
    OidcOption, OpenSession, Session, SessionOptions, SignIn, SignInMeans, SignedIn, SignedOut,
};
pub use shares::{ExperimentShares, ModelShares};
pub use shell::{ShellAsk, ShellTell};
pub use timeline::{
    HeldLease, JobRef, LeaseList, LeaseQuery, LeaseState, PromisedPlace, PromisedPlaces,
    ReservedNodes, Segment, SegmentState, Timeline,
};
pub use value::{At, Id};
pub use volume::{Volume, VolumeDelete, VolumeQuery};
pub use why::{AtRisk, Blocker, DrainPreview, Eta, Sooner, StopPreview, Why};

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// All there are: lists that cannot grow long come whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Items<T: ToSchema> {
    pub items: Vec<T>,
}
