//! Whose things are: the namespaces of teams, and the owners of queues.

pub mod namespaces;
pub mod ownership;
pub mod rows;
mod teams;

pub use namespaces::{is_for_teams, namespace};
pub use teams::{ACCOUNT, NamespaceError, Teams};
