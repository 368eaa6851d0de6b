//! From a job file to what the scheduler and a driver need.

use super::JobFile;
use super::models::{Asked, Models};
use super::parts::{Priority, Spot};
use crate::error::{did_you_mean, or_list};
use berth_model::run::{
    Command, Launch, LogLimits, Network, Port, Ready, ReadyCheck, RetryPlan, RunSpec, Times, Tool,
};
use berth_model::{
    ArraySpec, Bytes, CodeId, Cpu, GroupSpec, JobId, JobKind, JobRequest, LabelAsk, Lifecycle,
    Name, Policy, PriorityClass, Span, Spread, Time, TopologyAsk, Workload,
};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A service has no end of its own; a limit it would reach is a failure.
pub const SERVICE_TIME: Span = Span::days(3_650);

/// What a notebook without a command runs.
const NOTEBOOK: &str = "exec jupyter lab --no-browser --ip=127.0.0.1 --port=\"$PORT\"";

/// The server sees no folder of a user's machine.
const NOT_A_SNAPSHOT: &str = "a folder is sent by the command line; submit the file with `berth run \
                              -f FILE`, or name a snapshot, as sha256:DIGEST";

/// The longest argument or variable that Linux hands to a program.
const LONGEST_TEXT: usize = (128 << 10) - 1;

/// What a file leaves open, and what there is.
#[derive(Debug, Clone)]
pub struct Defaults {
    pub user: Name,
    pub team: Name,
    pub project: Name,
    pub classes: BTreeMap<Name, PriorityClass>,
    pub policy: Policy,
    pub models: Models,
    /// Levels of the cluster's topologies, besides `node` and `nvlink`.
    pub levels: Vec<Name>,
    pub abilities: Abilities,
    pub logs: LogLimits,
}

/// What this kind of cluster can do for a job. One machine can do none of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Abilities {
    pub images: bool,
    pub models: bool,
    pub data: bool,
    pub idle: bool,
    pub scale: bool,
    pub tools: bool,
    /// Old checkpoints are removed.
    pub keep: bool,
}

/// What was taken as written, and has no effect here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    pub key: &'static str,
    pub message: String,
}

/// What cannot be done as written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{key}`: {message}")]
pub struct Refused {
    pub key: &'static str,
    pub message: String,
}

fn refuse<T>(key: &'static str, message: impl Into<String>) -> Result<T, Refused> {
    Err(Refused { key, message: message.into() })
}

/// Fills in what the file leaves open, as of now: the job to ask for, and what has no effect here.
pub fn lower(
    file: &JobFile,
    defaults: &Defaults,
    now: Time,
) -> Result<(JobRequest, Vec<Warning>), Refused> {
    let kind = file.kind.unwrap_or_default();
    let command = command(file, kind)?;
    refuse_what_cannot_be(file, defaults, now)?;
    let asked = asked(file, defaults)?;
    let mut warnings = warnings(file, defaults.abilities);
    let grace = grace(file, &defaults.policy, &mut warnings);
    let run = run(file, kind, command.clone(), &asked, grace, defaults)?;
    let request = JobRequest {
        name: file.name.as_deref().map_or_else(|| name_of(&command), Name::new),
        kind,
        queue: file.team.as_deref().map_or(defaults.team.clone(), Name::new),
        user: defaults.user.clone(),
        project: file.project.as_deref().map_or(defaults.project.clone(), Name::new),
        experiment: file.experiment.as_deref().map_or_else(Name::default, Name::new),
        labels: file.labels.iter().map(|(k, v)| (Name::new(k), Name::new(v))).collect(),
        priority: priority(file.priority.as_ref(), &defaults.classes)?,
        preemptible: file.preemptible.unwrap_or(true),
        lifecycle: file.spot.and_then(|spot| match spot {
            Spot::Never => Some(Lifecycle::OnDemand),
            Spot::Auto => None,
            Spot::Only => Some(Lifecycle::Spot),
        }),
        time_limit: file.time.or((kind == JobKind::Service).then_some(SERVICE_TIME)),
        deadline: file.deadline.map(|deadline| deadline.from(now)),
        restart_cost: None,
        grace: file.checkpoint.as_ref().and_then(|c| c.grace).map(|_| grace),
        min_runtime: None,
        preempt_after: None,
        array: array(file),
        after: file.after.clone(),
        singleton: file.singleton.unwrap_or(false),
        begin: file.begin.map(|begin| begin.from(now)),
        hold: file.hold.unwrap_or(false),
        groups: vec![group(file, asked, &defaults.levels)?],
        workload: Workload::Run(Arc::new(run)),
        file: String::new(),
        asks: String::new(),
        resume_from: None,
    };
    Ok((request, warnings))
}

/// All that [`lower`] refuses about different keys of a file.
pub fn refusals(file: &JobFile, defaults: &Defaults, now: Time) -> Vec<Refused> {
    let found = [
        refuse_what_cannot_be(file, defaults, now).err(),
        asked(file, defaults).err(),
        priority(file.priority.as_ref(), &defaults.classes).err(),
        command(file, file.kind.unwrap_or_default()).err(),
    ];
    found.into_iter().flatten().collect()
}

fn asked(file: &JobFile, defaults: &Defaults) -> Result<Asked, Refused> {
    let asked = defaults.models.ask(&file.gpus);
    asked.map_err(|error| Refused { key: "gpus", message: error.to_string() })
}

fn command(file: &JobFile, kind: JobKind) -> Result<Command, Refused> {
    match (&file.run, kind) {
        (Some(command), _) => Ok(command.clone()),
        (None, JobKind::Notebook) => Ok(Command::Shell(NOTEBOOK.to_owned())),
        (None, JobKind::Job | JobKind::Service) => {
            refuse("run", "there is nothing to run; say what, such as `run: python train.py`")
        }
    }
}

fn refuse_what_cannot_be(file: &JobFile, defaults: &Defaults, now: Time) -> Result<(), Refused> {
    let Abilities { images, models, .. } = defaults.abilities;
    if file.image.is_some() && !images {
        return refuse(
            "image",
            "there are no containers on this cluster; leave it out and install what the command \
             needs on the machine",
        );
    }
    if !file.pull_secrets.is_empty() && !images {
        return refuse("pull_secrets", "there are no containers on this cluster; leave them out");
    }
    if file.model.is_some() && !models {
        return refuse(
            "model",
            "there is no model registry on this cluster; leave it out and name the model's files \
             in the command",
        );
    }
    if file.array.is_some() && file.sweep.is_some() {
        return refuse("sweep", "a sweep is an array already; leave out `array` or `sweep`");
    }
    if file.deadline.is_some_and(|deadline| deadline.from(now) <= now) {
        return refuse("deadline", "it is over already; name a moment to come");
    }
    if let Some(path) = &file.workdir {
        let is_absolute = path.starts_with('/');
        if !is_absolute && file.code.is_none() {
            return refuse("workdir", "name it from the root on, with a path that begins with /");
        }
        if !is_absolute && path.split('/').any(|part| part == "..") {
            return refuse("workdir", "it leads out of the code; name a folder in it");
        }
    }
    if file.network == Some(Network::None) && defaults.abilities.images {
        return refuse(
            "network",
            "jobs here are pods, whose network the cluster decides; leave it out and use a \
             NetworkPolicy",
        );
    }
    refuse_long_texts(file)?;
    let swept = file.sweep.iter().flat_map(|sweep| &sweep.parameters);
    let names = file.env.keys().chain(swept.map(|parameter| &parameter.name));
    match names.into_iter().find(|name| file.secrets.contains_key(*name)) {
        Some(name) => refuse("secrets", format!("`{name}` is given a value elsewhere too")),
        None => Ok(()),
    }
}

/// Linux starts no program with a longer argument or variable. A script may be longer: it is handed
/// over in pieces.
fn refuse_long_texts(file: &JobFile) -> Result<(), Refused> {
    if let Some(Command::Program(words)) = &file.run
        && words.iter().any(|word| word.len() > LONGEST_TEXT)
    {
        return refuse(
            "run",
            "an argument of a program has at most 128 KiB; write the command as one script, or \
             keep the text in a file",
        );
    }
    if file.setup.as_ref().is_some_and(|setup| setup.len() > LONGEST_TEXT) {
        return refuse("setup", "a setup has at most 128 KiB; keep the script in a file");
    }
    match file.env.iter().find(|(name, value)| name.len() + value.len() + 1 > LONGEST_TEXT) {
        Some((name, _)) => {
            let message = format!("`{name}` is longer than 128 KiB; keep its value in a file");
            refuse("env", message)
        }
        None => Ok(()),
    }
}

fn warnings(file: &JobFile, abilities: Abilities) -> Vec<Warning> {
    let is_absent = |source: &&String| match source.split_once(':') {
        None => false,
        Some(("dvc", _)) => !abilities.data,
        Some(_) => true,
    };
    let outside = file.data.values().any(|source| is_absent(&source));
    let tools = file.open.iter().any(|tool| *tool != Tool::Jupyter);
    let keeps_checkpoints =
        file.checkpoint.as_ref().is_some_and(|checkpoint| checkpoint.keep.is_some());
    let logs_here =
        !file.env.contains_key("MLFLOW_TRACKING_URI") && file.network != Some(Network::None);
    let without_effect = [
        ("data", outside),
        ("idle", file.idle.is_some() && !abilities.idle),
        ("scale", file.scale.is_some() && !abilities.scale),
        ("open", tools && !abilities.tools),
        ("checkpoint", keeps_checkpoints && !abilities.keep),
        ("stop_when", !file.stop_when.is_empty() && !logs_here),
    ];
    let message = |key| match key {
        "data" => "data is not fetched on this kind of cluster yet; see that it is there",
        "idle" => "idle jobs are not stopped on this kind of cluster yet",
        "scale" => "there is one replica; services do not scale on this kind of cluster yet",
        "stop_when" => {
            "the job logs to another tracking server or has no network, so Berth cannot read its metrics"
        }
        "open" => "only the port of a notebook opens on this kind of cluster yet",
        _ => "`keep` has no effect yet; old checkpoints stay until you remove them",
    };
    let warn = |(key, warned): (&'static str, bool)| {
        warned.then(|| Warning { key, message: message(key).to_owned() })
    };
    without_effect.into_iter().filter_map(warn).collect()
}

fn grace(file: &JobFile, policy: &Policy, warnings: &mut Vec<Warning>) -> Span {
    let asked = file.checkpoint.as_ref().and_then(|checkpoint| checkpoint.grace);
    let most = policy.grace;
    match asked {
        Some(asked) if asked > most => {
            let message = format!("a grace of {asked} is more than this cluster gives: {most}");
            warnings.push(Warning { key: "checkpoint", message });
            most
        }
        asked => asked.unwrap_or(most),
    }
}

fn run(
    file: &JobFile,
    kind: JobKind,
    command: Command,
    asked: &Asked,
    grace: Span,
    defaults: &Defaults,
) -> Result<RunSpec, Refused> {
    let launch = file.launch.unwrap_or_default();
    if launch == Launch::Once && file.ranks.is_some() {
        return refuse("ranks", "it needs `launch: ranks` or `launch: torchrun` beside it");
    }
    let ranks = match launch {
        Launch::Once => 1,
        Launch::Ranks | Launch::Torchrun => file.ranks.unwrap_or(asked.gpus.count().max(1)),
    };
    let port = match (file.port, kind) {
        (Some(port), _) => Port::At(port),
        (None, JobKind::Notebook | JobKind::Service) => Port::Any,
        (None, JobKind::Job) => Port::None,
    };
    if file.ready.is_some() && port == Port::None {
        return refuse("ready", "there is no port to look at; name one with `port`");
    }
    let listening = Ready { check: ReadyCheck::Tcp, within: None };
    let code = file.code.as_ref().map(|code| code.parse::<CodeId>()).transpose();
    let code = code.map_err(|_| Refused { key: "code", message: NOT_A_SNAPSHOT.to_owned() })?;
    let retry = file.retry.unwrap_or_default();
    Ok(RunSpec {
        kind,
        command,
        env: file.env.clone(),
        secrets: file.secrets.clone(),
        workdir: file.workdir.clone(),
        code,
        setup: file.setup.clone(),
        volumes: file.volumes.clone(),
        data: file.data.clone(),
        network: file.network.unwrap_or_default(),
        launch,
        ranks,
        port,
        ports: file.ports.clone(),
        ready: file.ready.clone().or((kind != JobKind::Job).then_some(listening)),
        checkpoint: file.checkpoint.clone().unwrap_or_default(),
        retry: RetryPlan {
            infra: retry.infra.unwrap_or(Times::Forever),
            error: retry.error.unwrap_or(Times::At(0)),
            oom: retry.oom.unwrap_or(Times::At(0)),
            wait: retry.wait.unwrap_or(Span::secs(10)),
        },
        grace,
        logs: defaults.logs,
        sweep: file.sweep.clone(),
        budget: file.budget,
        notify: file.notify.clone(),
        stop_when: file.stop_when.clone(),
        open: file.open.clone(),
        tags: file.tags.clone(),
        comment: file.comment.clone(),
        container: None,
    })
}

fn priority(
    asked: Option<&Priority>,
    classes: &BTreeMap<Name, PriorityClass>,
) -> Result<i32, Refused> {
    let class = match asked {
        Some(Priority::Number(number)) => return Ok(*number),
        Some(Priority::Class(class)) => class,
        None => return Ok(classes.get("normal").map_or(50, |class| class.value)),
    };
    classes.get(class).map(|class| class.value).map_or_else(
        || {
            let known = || classes.keys().map(Name::as_str);
            let hint = did_you_mean(class, known());
            let words = or_list(known());
            refuse("priority", format!("found `{class}`, expected {words}, or a number{hint}"))
        },
        Ok,
    )
}

/// The elements of a sweep are numbered through its combinations.
fn array(file: &JobFile) -> Option<ArraySpec> {
    let Some(sweep) = &file.sweep else { return file.array.clone() };
    let count = sweep.len().and_then(|count| u32::try_from(count).ok()).unwrap_or(0);
    Some(ArraySpec { elements: (0..count).collect(), at_most: sweep.at_most })
}

fn group(file: &JobFile, asked: Asked, levels: &[Name]) -> Result<GroupSpec, Refused> {
    let nodes = file.nodes.unwrap_or(1);
    let (topology, spread) = place(file.place.as_deref().unwrap_or("any"), levels)?;
    Ok(GroupSpec {
        name: Name::new("main"),
        count: nodes,
        min: nodes,
        groups: Vec::new(),
        gpus: asked.gpus,
        models: asked.models,
        min_gpu_memory: asked.min_memory,
        cpu: file.cpu.unwrap_or(Cpu::ZERO),
        memory: file.memory.unwrap_or(Bytes::ZERO),
        topology,
        spread,
        labels: LabelAsk::default(),
        tolerations: Vec::new(),
        near: Vec::new(),
        counted: BTreeMap::new(),
        nodes: None,
    })
}

fn place(word: &str, levels: &[Name]) -> Result<(Option<TopologyAsk>, Option<Spread>), Refused> {
    let known = || ["node", "nvlink"].into_iter().chain(levels.iter().map(Name::as_str));
    match word {
        "any" => Ok((None, None)),
        "apart" => Ok((None, Some(Spread { over: Name::new("node"), at_most: 1 }))),
        level if known().any(|known| known == level) => {
            let required = Some(Name::new(level));
            Ok((Some(TopologyAsk { required, ..TopologyAsk::default() }), None))
        }
        other => {
            let words = || ["any", "apart"].into_iter().chain(known());
            let hint = did_you_mean(other, words());
            refuse("place", format!("found `{other}`, expected {}{hint}", or_list(words())))
        }
    }
}

/// The script a command runs, or its program: what a person would call it.
fn name_of(command: &Command) -> Name {
    let words: Vec<&str> = match command {
        Command::Shell(_) if *command == Command::Shell(NOTEBOOK.to_owned()) => vec!["notebook"],
        Command::Shell(script) => {
            let mut lines = script.lines().map(str::trim);
            let first = lines.find(|line| !line.is_empty() && !line.starts_with('#'));
            first.unwrap_or("job").split_whitespace().collect()
        }
        Command::Program(words) => words.iter().map(String::as_str).collect(),
    };
    let script = words.iter().find(|word| word.ends_with(".py") || word.ends_with(".sh"));
    let word = script.or(words.first()).map_or("job", |word| *word);
    let file = word.rsplit('/').next().unwrap_or(word);
    let stem = file.strip_suffix(".py").or(file.strip_suffix(".sh")).unwrap_or(file);
    let allowed = |c: &char| c.is_ascii_alphanumeric() || "._-".contains(*c);
    let name: String = stem.chars().filter(allowed).take(100).collect();
    let name = name.trim_start_matches(['.', '_', '-']);
    match name.is_empty() || name.parse::<JobId>().is_ok() {
        true => Name::new("job"),
        false => Name::new(name),
    }
}
