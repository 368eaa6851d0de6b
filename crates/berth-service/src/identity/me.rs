//! Who is asking.

use super::tokens::shown;
use crate::caller::Caller;
use crate::service::Service;
use berth_api::wire;
use berth_engine::DEFAULT_PROJECT;

pub fn me(service: &Service, caller: &Caller) -> wire::Me {
    wire::Me {
        user: caller.user().to_owned(),
        cluster_role: caller.cluster_role(),
        teams: caller.teams().to_vec(),
        default_team: caller.default_team(),
        default_project: Some(DEFAULT_PROJECT.to_owned()),
        token: shown(caller.token()),
        machine: service.host.machine(),
    }
}
