//! What a job names beside other jobs: its project, its secrets, and who hears of it. Names that
//! stand for nothing are refused at submission, where the user still sees why.

use crate::fault::Fault;
use crate::notify_address::AddressError;
use crate::service::Service;
use berth_api::Code;
use berth_engine::DEFAULT_PROJECT;
use berth_engine::notices::setting;
use berth_file::error::did_you_mean;
use berth_model::JobRequest;
use berth_model::run::{Notify, Via};
use berth_store::{ProjectRow, SecretRow, SettingRow};

/// Targets of messages that one job may name.
const MOST_TARGETS: usize = 16;

pub async fn must_have_project(service: &Service, team: &str, project: &str) -> Result<(), Fault> {
    let known = project == DEFAULT_PROJECT
        || service.store.get::<ProjectRow>((team, project)).await?.is_some();
    if known {
        return Ok(());
    }
    let all = service.store.every::<ProjectRow>().await?;
    let own = all.iter().filter(|row| row.team == team).map(|row| row.name.as_str());
    let hint = did_you_mean(project, own.chain([DEFAULT_PROJECT]));
    let detail = format!("team {team} has no project `{project}`{hint}");
    let next = format!("add it with `berth project add {project} --team {team}`");
    Err(Fault::new(Code::JobRefused, detail).next(next))
}

pub async fn must_have_secrets(
    service: &Service,
    team: &str,
    request: &JobRequest,
) -> Result<(), Fault> {
    let secrets = request.workload.run().into_iter().flat_map(|run| run.secrets.values());
    for secret in secrets {
        if service.store.get::<SecretRow>((team, secret.as_str())).await?.is_some() {
            continue;
        }
        let all = service.store.every::<SecretRow>().await?;
        let own = all.iter().filter(|row| row.team == team).map(|row| row.name.as_str());
        let detail = format!("team {team} has no secret `{secret}`{}", did_you_mean(secret, own));
        let next = format!("add it with `berth secret set {secret} --team {team}`");
        return Err(Fault::new(Code::NoSuchSecret, detail).next(next));
    }
    Ok(())
}

/// Refuses targets that no message would ever reach.
pub async fn must_notify_in_reach(service: &Service, request: &JobRequest) -> Result<(), Fault> {
    let Some(run) = request.workload.run() else { return Ok(()) };
    if run.notify.len() > MOST_TARGETS {
        let detail = format!(
            "the job names {} targets of messages, and {MOST_TARGETS} are the most",
            run.notify.len()
        );
        return Err(Fault::new(Code::JobRefused, detail).next("name fewer under `notify`"));
    }
    for notify in &run.notify {
        if notify.to.contains("://") {
            let refused =
                |why: AddressError| Fault::new(Code::JobRefused, why.to_string()).next(why.next());
            service.notify_addresses.check_url(&notify.to).map_err(refused)?;
        } else {
            must_have_target(service, &target(notify)).await?;
        }
    }
    Ok(())
}

fn target(notify: &Notify) -> String {
    let via = match notify.via {
        Via::Slack => "slack",
        Via::Webhook => "webhook",
    };
    format!("{via}:{}", notify.to)
}

async fn must_have_target(service: &Service, target: &str) -> Result<(), Fault> {
    if service.store.get::<SettingRow>(setting(target).as_str()).await?.is_some() {
        return Ok(());
    }
    let prefix = setting("");
    let all = service.store.every::<SettingRow>().await?;
    let known = all.iter().filter_map(|row| row.name.strip_prefix(&prefix));
    let hint = did_you_mean(target, known);
    let detail = format!("this server knows no target of messages `{target}`{hint}");
    let next = format!(
        "an operator adds it with `berth apply`: {{kind: notify, name: '{target}', url: https://…}}; \
         or name the URL itself under `notify`"
    );
    Err(Fault::new(Code::JobRefused, detail).next(next))
}
