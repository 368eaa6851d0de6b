//! Jobs.

use crate::app::App;
use axum::routing::{MethodFilter, MethodRouter};

pub(super) fn handler(_id: &str, _filter: MethodFilter) -> Option<MethodRouter<App>> {
    None
}
