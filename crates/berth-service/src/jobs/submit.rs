//! Submitting a job file.

use super::find::{self, PARENT};
use super::named::{must_have_project, must_have_secrets, must_notify_in_reach};
use super::{budget_left, depend, late, priority, reasons};
use crate::caller::Caller;
use crate::checks;
use crate::code;
use crate::data::{self, Pinned};
use crate::fault::Fault;
use crate::service::Service;
use crate::templates;
use crate::token;
use berth_api::access::Permission;
use berth_api::{Code, Problem, wire};
use berth_engine::clock;
use berth_engine::{Act, DEFAULT_PROJECT, Idempotent, Write};
use berth_file::job::{self, Abilities, Defaults, JobFile, Models, Parsed, Schedule};
use berth_model::{JobId, JobRequest, Name};
use berth_store::{Batch, IdempotencyRow, ScheduleRow, Store};
use ring::digest::{SHA256, digest};
use serde_json::json;
use std::path::Path;

/// A number that no job has, for trying a request out.
pub const TRIED: JobId = JobId::new(u64::MAX >> 12);

/// What the server answers about a request beside the job itself.
pub struct Remarks {
    /// The file makes jobs again and again, by the calendar.
    pub schedule: Option<Schedule>,
    pub warnings: Vec<wire::Warning>,
}

pub async fn submit(
    service: &Service,
    caller: &Caller,
    key: Option<String>,
    query: wire::SubmitQuery,
    text: &str,
) -> Result<wire::JobSubmitted, Fault> {
    let permission = Permission::JobsSubmit;
    let mut parsed = read_all(service, caller, &query, text, permission).await?;
    let template = template(service, caller, query.template.as_deref()).await?;
    let moved = start_here(service, caller, &mut parsed, template.as_ref(), &query);
    let (mut request, mut remarks) =
        prepare(service, caller, &parsed, template.as_ref(), permission).await?;
    remarks.warnings.extend(moved);
    request.hold |= query.hold;
    if query.dry_run {
        return Ok(answer(&request, &remarks, None, None));
    }
    let said = format!("{query:?}\n{text}");
    let made = make(service, caller, key, request, remarks, said).await?;
    Ok(with_budget(service, caller, made))
}

/// Warns if the expected cost exceeds what is left of a budget, like a plan.
fn with_budget(
    service: &Service,
    caller: &Caller,
    mut made: wire::JobSubmitted,
) -> wire::JobSubmitted {
    let id = made.id.filter(|_| !made.repeated);
    let warning = id.and_then(|id| budget_left::warning_of(service, caller, id.0, made.elements));
    made.warnings.extend(warning);
    made
}

pub async fn clone(
    service: &Service,
    caller: &Caller,
    key: Option<String>,
    wanted: &str,
    how: wire::JobClone,
) -> Result<wire::JobSubmitted, Fault> {
    let found = find::job(service, caller, wanted, Permission::JobsRead).await?;
    let over = read(how.file.as_deref().unwrap_or("{}"))?;
    let old = read_kept(&found.first().file)?.file.without(&over.left_out);
    let permission = Permission::JobsSubmit;
    let (mut request, remarks) = prepare(service, caller, &over, Some(&old), permission).await?;
    if how.resume {
        must_stay_in_team(&found.first().team, &request.queue)?;
    }
    request.resume_from = how.resume.then_some(found.first().id);
    if how.resume && !service.host.keeps_checkpoints() {
        let detail = "nothing keeps what jobs save: the server was started without --checkpoints";
        let next = "start it with --checkpoints CLAIM, or clone the job without --resume";
        return Err(Fault::new(Code::JobRefused, detail).next(next));
    }
    let said = format!("clone {} {how:?}", found.id);
    let made = make(service, caller, key, request, remarks, said).await?;
    Ok(with_budget(service, caller, made))
}

/// What a job saved belongs to its team: a job of another team must not have it, whoever may read
/// about both. That the caller may submit for the team was looked at before.
fn must_stay_in_team(old: &str, new: &str) -> Result<(), Fault> {
    if old == new {
        return Ok(());
    }
    let detail = format!("the checkpoint is team {old}'s, and the new job would be team {new}'s");
    let next = format!("clone it for team {old}, or without --resume");
    Err(Fault::new(Code::Forbidden, detail).next(next))
}

/// A command starts in the folder its user is in, where that folder is there and the user's jobs may
/// see it. Otherwise a warning says so.
pub fn start_here(
    service: &Service,
    caller: &Caller,
    parsed: &mut Parsed,
    below: Option<&JobFile>,
    query: &wire::SubmitQuery,
) -> Option<wire::Warning> {
    let says = |file: &JobFile| file.workdir.is_some() || file.code.is_some();
    let said = says(&parsed.file) || below.is_some_and(says);
    // Inside a job that is the job's own folder, which no other job sees.
    let here = query.here.as_ref().filter(|here| !Path::new(here).starts_with(service.home.root()));
    let here = here.filter(|_| !said && !service.host.runs_containers())?;
    match service.host.keeps_from_starting_in(caller.user(), Path::new(here)) {
        None => {
            parsed.file.workdir = Some(here.clone());
            None
        }
        Some(why) => {
            let message = format!("the command starts in the job's own folder: {why}");
            Some(wire::Warning { key: "workdir".to_owned(), message, line: None })
        }
    }
}

/// Reads a file, and says all that is wrong with one that has mistakes: what the server would refuse of its
/// other keys, too.
pub async fn read_all(
    service: &Service,
    caller: &Caller,
    query: &wire::SubmitQuery,
    text: &str,
    permission: Permission,
) -> Result<Parsed, Fault> {
    let (parsed, mistakes) = job::read_partly(text);
    let Some(mistakes) = mistakes else { return Ok(parsed) };
    let problem = Problem::of_mistakes(&mistakes);
    let below = template(service, caller, query.template.as_deref()).await.ok().flatten();
    let file = below.map_or_else(|| parsed.file.clone(), |below| below.merge(&parsed.file));
    let team = file.team.clone().or_else(|| caller.default_team());
    let team = team.filter(|team| caller.may(permission, Some(team), Some(caller.user())));
    let Some(team) = team else { return Err(problem.into()) };
    let defaults = defaults(service, caller, &team, &file);
    let mut refused = job::refusals(&file, &defaults, clock::now());
    refused.retain(|one| !mistakes.concern(one.key));
    Err(match refused.is_empty() {
        true => problem.into(),
        false => problem.and_refused(&refused, &parsed).into(),
    })
}

pub fn read(text: &str) -> Result<Parsed, Fault> {
    job::read(text).map_err(|mistakes| Problem::of_mistakes(&mistakes).into())
}

/// A file that the server has kept.
pub fn read_kept(text: &str) -> Result<Parsed, Fault> {
    job::read_kept(text).map_err(|mistakes| Problem::of_mistakes(&mistakes).into())
}

/// The template of that name, of any team whose templates one may see.
pub async fn template(
    service: &Service,
    caller: &Caller,
    name: Option<&str>,
) -> Result<Option<JobFile>, Fault> {
    let Some(name) = name.map(|name| name.trim_start_matches('@')) else { return Ok(None) };
    let row = templates::named(service, caller, name).await?;
    Ok(Some(read_kept(&row.file)?.file))
}

/// Fills in what the file leaves open, and sees that everything it names is there. Trying a file
/// out takes less than submitting it.
pub async fn prepare(
    service: &Service,
    caller: &Caller,
    parsed: &Parsed,
    below: Option<&JobFile>,
    permission: Permission,
) -> Result<(JobRequest, Remarks), Fault> {
    service.host.must_take_jobs()?;
    let file = below.map_or_else(|| parsed.file.clone(), |below| below.merge(&parsed.file));
    let team = file.team.clone().or_else(|| caller.default_team());
    let Some(team) = team else {
        let user = caller.user();
        let detail = format!("{user} is in no team, and a job needs a team that pays for it");
        let next =
            format!("ask an admin or a team lead for `berth member set TEAM {user} researcher`");
        return Err(Fault::new(Code::JobRefused, detail).next(next));
    };
    caller.must(permission, Some(&team), Some(caller.user()))?;
    caller.must_know(&team)?;
    if permission == Permission::JobsSubmit {
        service.host.must_have_room()?;
    }
    let defaults = defaults(service, caller, &team, &file);
    let refuse = |refused| Fault::from(Problem::of_refused(&refused, Some(parsed)));
    let now = clock::now();
    let lowered = job::lower(&file, &defaults, now).map_err(|first| {
        let all = job::refusals(&file, &defaults, now);
        match all.len() {
            0 | 1 => refuse(first),
            _ => Problem::of_refusals(&all, Some(parsed)).into(),
        }
    });
    let (mut request, mut warnings) = lowered?;
    service.host.accept(&file, &team, &mut request, &mut warnings).map_err(refuse)?;
    let asked_for = file.priority.is_some();
    request.priority = priority::checked(service, caller, &team, request.priority, asked_for)?;
    // The jobs of a schedule come after those that are there when they are made.
    match file.schedule {
        None => request.after = depend::by_number(service, caller, &request).await?,
        Some(_) => depend::check_schedule(service, caller, &request).await?,
    }
    name_parent(caller, &mut request);
    request.file = job::write(&file);
    request.asks = asks(&file);
    let project = file.project.as_deref().unwrap_or(DEFAULT_PROJECT);
    must_have_project(service, &team, project).await?;
    must_notify_in_reach(service, &request).await?;
    must_have_secrets(service, &team, &request).await?;
    data::pin(service, caller, &team, &mut request).await.map_err(|why| match why {
        Pinned::Refused(message) => refuse(job::Refused { key: "data", message }),
        Pinned::Fault(fault) => fault,
    })?;
    let code = request.workload.run().and_then(|run| run.code.clone());
    if let Some(code) = code.filter(|_| permission == Permission::JobsSubmit) {
        code::must_be_there(service, &team, &code).await?;
    }
    let line = |key: &str| parsed.at(key).map(|at| at.line);
    let warnings = warnings.iter().map(|warning| wire::Warning {
        key: warning.key.to_owned(),
        message: warning.message.clone(),
        line: line(warning.key),
    });
    let late = late::warning(&request, defaults.policy.default_time_limit, clock::now());
    let warnings = warnings.chain(late).collect();
    let remarks = Remarks { schedule: file.schedule.clone(), warnings };
    Ok((request, remarks))
}

/// A job that submits others may stop them, so it is kept which are its own. Nobody else says so.
fn name_parent(caller: &Caller, request: &mut JobRequest) {
    request.labels.remove(PARENT);
    if let Some(job) = caller.job() {
        request.labels.insert(Name::new(PARENT), Name::from(job.to_string()));
    }
}

fn defaults(service: &Service, caller: &Caller, team: &str, file: &JobFile) -> Defaults {
    let shared = if file.asks_for_shares() { service.host.shared_gpus() } else { Vec::new() };
    let core = service.engine.core();
    let state = &core.state;
    Defaults {
        user: Name::new(caller.user()),
        team: Name::new(team),
        project: Name::new(DEFAULT_PROJECT),
        classes: state.classes().clone(),
        policy: state.policy().clone(),
        models: Models::new(state.gpu_models()).with_shared(shared),
        levels: state.levels().into_iter().collect(),
        abilities: Abilities {
            images: service.host.runs_containers(),
            data: service.host.fetches_data(),
            ..Abilities::default()
        },
        logs: job::LogLimits::default(),
    }
}

/// What the file asks for, in its own words.
fn asks(file: &JobFile) -> String {
    let gpus: Vec<String> = file.gpus.iter().map(ToString::to_string).collect();
    let each = if gpus.is_empty() { "no GPU".to_owned() } else { gpus.join(" or ") };
    match file.nodes.unwrap_or(1) {
        1 => each,
        nodes => format!("{nodes} x {each}"),
    }
}

/// Submits it. The same key stands for the same request, which is done once.
pub async fn make(
    service: &Service,
    caller: &Caller,
    key: Option<String>,
    request: JobRequest,
    remarks: Remarks,
    said: String,
) -> Result<wire::JobSubmitted, Fault> {
    let fingerprint = fingerprint(&said);
    if let Some(key) = &key
        && let Some(before) = before(service, caller, key, &fingerprint).await?
    {
        return Ok(before);
    }
    must_fit(service, &request)?;
    if let (Some(job), Some(_)) = (caller.job(), &remarks.schedule) {
        let detail = format!("job {job} may submit jobs, but no schedule, which would outlive it");
        return Err(Fault::new(Code::Forbidden, detail).next("submit it with a token of your own"));
    }
    let schedule = remarks.schedule.as_ref().map(|_| token::mint().id);
    let shown = answer(&request, &remarks, None, schedule.clone());
    let again = shown.clone();
    let once = key.clone().map(|key| Idempotent {
        user: caller.user().to_owned(),
        key,
        fingerprint: fingerprint.clone(),
        status: 201,
        answer: Box::new(move |id| {
            let mut kept = again.clone();
            kept.id = id.map(wire::Id);
            serde_json::to_string(&kept).expect("answers are plain data")
        }),
    });
    if let (Some(id), Some(schedule)) = (schedule, &remarks.schedule) {
        let write = Write { once, ..schedule_write(caller, &request, schedule, id) };
        let written = service.engine.write(write).await?;
        // Sent twice at the same moment: the answer is that of the one that was first.
        let first = match key.filter(|_| written.repeated) {
            Some(key) => before(service, caller, &key, &fingerprint).await?,
            None => None,
        };
        return Ok(first.unwrap_or(shown));
    }
    let detail = json!({ "name": shown.name, "team": request.queue, "asks": request.asks });
    let audit = caller.audit("job", detail);
    let act = Act::Submit(Box::new(request));
    let write = Write { once, ..Write::act(act, audit) };
    let written = service.engine.write(write).await?;
    Ok(wire::JobSubmitted { id: written.job.map(wire::Id), repeated: written.repeated, ..shown })
}

/// Refuses a job that would wait for ever: at submission the user still sees why.
fn must_fit(service: &Service, request: &JobRequest) -> Result<(), Fault> {
    let spec = request.spec(TRIED, clock::now());
    let mut core = service.engine.core();
    let never = core.state.never(&spec);
    let never = service.host.refine(&core, None, &spec.groups, never);
    drop(core);
    if !reasons::are_lasting(&never) {
        return Ok(());
    }
    let why: Vec<String> = never.iter().map(ToString::to_string).collect();
    Err(Fault::new(Code::NeverFits, why.join("; ")))
}

fn answer(
    request: &JobRequest,
    remarks: &Remarks,
    id: Option<JobId>,
    schedule: Option<String>,
) -> wire::JobSubmitted {
    wire::JobSubmitted {
        id: id.map(wire::Id),
        name: request.name.to_string(),
        schedule,
        elements: request.array.as_ref().map_or(1, |array| array.elements.len() as u32),
        warnings: remarks.warnings.clone(),
        repeated: false,
    }
}

fn fingerprint(said: &str) -> String {
    hex::encode(digest(&SHA256, said.as_bytes()))
}

/// The answer that the same request got before.
async fn before(
    service: &Service,
    caller: &Caller,
    key: &str,
    fingerprint: &str,
) -> Result<Option<wire::JobSubmitted>, Fault> {
    let row = service.store.get::<IdempotencyRow>((caller.user(), key)).await?;
    let Some(row) = row else { return Ok(None) };
    if row.fingerprint != fingerprint {
        return Err(Fault::new(Code::KeyReused, "this key was used for another request"));
    }
    let kept: Option<wire::JobSubmitted> = serde_json::from_str(&row.body).ok();
    Ok(kept.map(|kept| wire::JobSubmitted { repeated: true, ..kept }))
}

/// Keeps the file, to make jobs from it by the calendar.
fn schedule_write(caller: &Caller, request: &JobRequest, schedule: &Schedule, id: String) -> Write {
    let name = request.name.to_string();
    let row = ScheduleRow {
        id: id.clone(),
        name: name.clone(),
        user: caller.user().to_owned(),
        team: request.queue.to_string(),
        cron: schedule.cron.to_string(),
        file: request.file.clone(),
        next_at: Some(schedule.cron.next(clock::now(), schedule.offset)),
        last_job: None,
        paused: false,
        reason: String::new(),
    };
    let mut documents = Batch::default();
    documents.put(&row);
    let audit = caller.audit(format!("schedule {id}"), json!({ "name": name, "cron": row.cron }));
    let there = async move |store: Store| {
        let both = async {
            checks::team(&store, &row.team).await?;
            checks::user(&store, &row.user).await.map(drop)
        };
        checks::all(both).await
    };
    Write::documents(documents, audit).only_if(there)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checkpoint_stays_in_the_team_of_the_job_that_saved_it() {
        assert!(must_stay_in_team("nlp", "nlp").is_ok());
        let refused = must_stay_in_team("nlp", "vision").unwrap_err().0;
        assert_eq!(refused.known_code(), Some(Code::Forbidden));
        assert!(refused.detail.contains("team nlp's"), "{}", refused.detail);
    }
}
