//! Every key of a job file, once: its flag, its words for people, and how it is read, written and
//! merged. The command line and docs/job-file.md are checked against this table.

use super::JobFile;
use super::{blocks, put, stop_when, values};
use crate::error::Result;
use crate::fields::boolean;
use crate::out::Out;
use crate::tree::Node;

/// One key.
pub struct Key {
    pub name: &'static str,
    /// The flag of the command line, without its dashes.
    pub flag: &'static str,
    pub short: Option<char>,
    pub takes: Takes,
    /// One sentence, without a full stop.
    pub help: &'static str,
    /// A value as it is written in a file.
    pub example: &'static str,
    pub(super) read: fn(&Node, &mut JobFile) -> Result<()>,
    pub(super) write: fn(&JobFile) -> Option<Out>,
    pub(super) merge: fn(&mut JobFile, &JobFile),
}

/// What a key's flag takes on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Takes {
    /// Nothing: it is there or not.
    Switch,
    /// One value; one that begins with `[` or `{` is read as YAML.
    Value,
    /// One value each time it is given.
    Values,
    /// `NAME=VALUE` each time it is given.
    Pairs,
    /// `NAME`, or `NAME=VALUE` where the two differ, each time it is given.
    NamesOrPairs,
    /// `NAME=VALUE,VALUE` each time it is given.
    Lists,
    /// No flag: what stands after `--`.
    Rest,
}

macro_rules! maybe {
    () => {
        None
    };
    ($value:literal) => {
        Some($value)
    };
}

/// A key with one value.
macro_rules! one {
    ($field:ident $(-$short:literal)? $takes:ident: $read:expr => $write:expr,
     $example:literal, $help:literal) => {
        Key {
            name: stringify!($field),
            flag: stringify!($field),
            short: maybe!($($short)?),
            takes: Takes::$takes,
            help: $help,
            example: $example,
            read: |node, file| {
                file.$field = Some($read(node)?);
                Ok(())
            },
            write: |file| file.$field.as_ref().map(|value| $write(value)),
            merge: |file, over| {
                if over.$field.is_some() {
                    file.$field = over.$field.clone();
                }
            },
        }
    };
}

/// A key with a list; one that lies over another replaces it.
macro_rules! list {
    ($field:ident $flag:literal $(-$short:literal)?: $read:expr => $write:expr,
     $example:literal, $help:literal) => {
        Key {
            name: stringify!($field),
            flag: $flag,
            short: maybe!($($short)?),
            takes: Takes::Values,
            help: $help,
            example: $example,
            read: |node, file| {
                file.$field = $read(node)?;
                Ok(())
            },
            write: |file| (!file.$field.is_empty()).then(|| $write(&file.$field)),
            merge: |file, over| {
                if !over.$field.is_empty() {
                    file.$field = over.$field.clone();
                }
            },
        }
    };
}

/// A key with a map; one that lies over another changes and adds entries.
macro_rules! pairs {
    ($field:ident $flag:literal $(-$short:literal)? $takes:ident: $read:expr,
     $example:literal, $help:literal) => {
        Key {
            name: stringify!($field),
            flag: $flag,
            short: maybe!($($short)?),
            takes: Takes::$takes,
            help: $help,
            example: $example,
            read: |node, file| {
                file.$field = $read(node)?;
                Ok(())
            },
            write: |file| (!file.$field.is_empty()).then(|| put::texts_by_name(&file.$field)),
            merge: |file, over| {
                let entries = over.$field.iter().map(|(key, value)| (key.clone(), value.clone()));
                file.$field.extend(entries);
            },
        }
    };
}

/// In the order in which a file is written: what, whose, where, when, how.
pub const KEYS: &[Key] = &[
    one!(name -'n' Value: values::job_name => put::text, "bert-sft",
        "name of the job (after its command)"),
    one!(kind Value: values::word(blocks::KINDS) => put::word(blocks::KINDS), "notebook",
        "job, notebook or service (job)"),
    one!(team -'t' Value: values::plain_name => put::text, "nlp",
        "team whose GPUs it uses and who pays (your default team)"),
    one!(project -'p' Value: values::plain_name => put::text, "llama",
        "which project it is charged to"),
    one!(experiment Value: values::plain_name => put::text, "lr-study",
        "which experiment it belongs to, for cost and comparison"),
    one!(nodes -'N' Value: values::up_to(blocks::MOST_NODES) => put::raw, "4",
        "how many equal parts it has, each on one machine; all start together (1)"),
    list!(gpus "gpus" -'g': values::few(blocks::MOST_ENTRIES, put::read_gpus) => put::gpus, "H100:8",
        "GPUs of each node: 1, H100:8 or 8xH100, L4, 24GB+, 0.5, 10GB, A100/1g.10gb, shared, or \
         alternatives, best first (none)"),
    one!(cpu -'c' Value: put::read_cpu => put::raw, "16",
        "CPU cores of each node (no request)"),
    one!(memory -'m' Value: values::memory => put::raw, "128GB",
        "memory of each node (no request)"),
    one!(time Value: values::some_span => put::raw, "72h",
        "how long it may run: 90m, 3d or 1-12:00:00 (the cluster's limit)"),
    one!(deadline Value: values::when => put::when, "2026-12-01T09:00Z",
        "when it must be done: a time, or a time from now such as 2d"),
    one!(budget Value: values::dollars => put::raw, "$4000",
        "what it may cost in all; it is stopped with its checkpoint and paused there"),
    one!(spot Value: values::word(blocks::SPOTS) => put::word(blocks::SPOTS), "auto",
        "never, auto or only: machines that may be taken away (auto)"),
    one!(priority Value: values::priority => put::priority, "high",
        "a class such as high, or a number (normal)"),
    one!(preemptible Value: boolean => put::raw, "false",
        "whether other jobs may preempt it (true)"),
    one!(place Value: values::plain_name => put::text, "rack",
        "what its nodes must share: any, nvlink, node, rack or another level; apart: one on each \
         machine (any)"),
    one!(launch Value: values::word(blocks::LAUNCHES) => put::word(blocks::LAUNCHES), "ranks",
        "once on each node, ranks for one process per GPU, or torchrun (once)"),
    one!(ranks Value: values::up_to(blocks::MOST_RANKS) => put::raw, "8",
        "processes on each node, for ranks and torchrun (one per GPU)"),
    one!(image Value: values::any_text => put::text, "pytorch:26.05",
        "container image; refused where there are no containers"),
    list!(pull_secrets "pull-secret": values::few(blocks::MOST_ENTRIES, values::pull_secrets) => put::texts,
        "[registry]",
        "secrets with which its image is pulled, of the namespace of its team; refused where there \
         are no containers"),
    pairs!(data "data" Pairs: values::data, "{/data: 'dvc:c4@v3'}",
        "data by the path it is wanted at"),
    pairs!(volumes "volume" Pairs: values::volumes, "{/home/me: home}",
        "volumes, or folders of the machine, by the path they are wanted at"),
    one!(workdir Value: values::any_text => put::text, "/home/me/code",
        "where the command starts (where it was submitted from)"),
    one!(code Value: values::any_text => put::text, ".",
        "a folder whose files the job gets as they are now, without those that git ignores; later \
         changes do not reach the job"),
    one!(setup Value: values::any_text => put::text, "python -m venv $BERTH_SETUP_DIR",
        "a script that prepares the environment; Berth keeps $BERTH_SETUP_DIR for jobs with the \
         same script and code"),
    one!(network Value: values::word(blocks::NETWORKS) => put::word(blocks::NETWORKS), "none",
        "machine, or none for a job that reaches nothing but itself (machine)"),
    pairs!(env "env" -'e' Pairs: values::variables, "{EPOCHS: 3}",
        "variables of its environment"),
    pairs!(secrets "secret" NamesOrPairs: values::secrets, "[HF_TOKEN]",
        "secrets, each in the variable of its name, or variables with their secrets"),
    one!(checkpoint Value: blocks::checkpoint => put::checkpoint,
        "{path: ckpt, every: 30m, grace: 5m, keep: 3, signal: USR1}",
        "where it saves, how often, how long it gets when it is stopped, how many are kept, by \
         which signal"),
    one!(retry Value: blocks::retry => put::retry, "{infra: forever, error: 2, oom: 0, wait: 30s}",
        "how often it is run again: after trouble with machines (forever), after its own failure \
         (0), out of memory (0)"),
    list!(notify "notify": blocks::notifies => put::notifies, "['slack:#nlp-train']",
        "who is notified: slack:#channel, webhook:name or a URL; {to, on} chooses from start, \
         done, failed, preempted, budget"),
    list!(stop_when "stop-when": values::few(stop_when::MOST, stop_when::read) => stop_when::write,
        "val_loss not better for 5 evaluations",
        "ends the job early by a metric of its run: METRIC above, below, is nan, not better for \
         N evaluations or not better than; several rules each end it"),
    one!(array -'a' Value: blocks::array => crate::array::write, "0-99%8",
        "runs it once for each number, 8 at a time; SLURM_ARRAY_TASK_ID says which"),
    one!(sweep Lists: blocks::sweep => put::sweep, "{lr: [1e-4, 3e-4], seed: [1, 2, 3]}",
        "runs it once for each combination of values, each in a variable of its name; {zip: {…}} \
         takes them side by side"),
    list!(after "after": values::few(blocks::MOST_AFTER, blocks::after) => put::after, "[prepare]",
        "jobs that must succeed before, by name or number; {ok, any, notok, start: […]} \
         says otherwise"),
    one!(singleton Switch: boolean => put::raw, "true",
        "one job of this name and user at a time (false)"),
    one!(begin -'b' Value: values::when => put::when, "6h",
        "not before: a time, or a time from now"),
    one!(hold -'H' Switch: boolean => put::raw, "true",
        "waits until `berth resume` (false)"),
    one!(schedule Value: blocks::schedule => put::schedule, "{cron: '0 3 * * *', timezone: '+01:00'}",
        "runs it again and again: five fields of cron or @daily, in UTC or at an offset"),
    list!(open "open": blocks::tools => put::words(blocks::TOOLS), "[jupyter, ssh]",
        "tools of a notebook: jupyter, vscode, ssh"),
    one!(idle Value: blocks::idle => put::idle, "{below: 5%, for: 30m, then: suspend}",
        "what happens when its GPUs do nothing: notify, suspend or stop"),
    one!(port Value: values::port => put::raw, "8000",
        "the port it listens on; a notebook or service without one gets one as PORT"),
    list!(ports "ports": values::few(blocks::MOST_ENTRIES, values::ports) => put::raws, "[6006]",
        "further ports it listens on"),
    one!(ready Value: blocks::ready => put::ready, "/health",
        "how a service says that it is ready: a path that answers, or tcp; {check, within} with \
         a time (tcp)"),
    one!(scale Value: blocks::scale => put::scale, "{min: 0, max: 8, pending: 10, predict: 15m}",
        "how many replicas a service has, by its load"),
    one!(model Value: values::any_text => put::text, "registry:chat-8b@production",
        "the model a service serves"),
    pairs!(labels "label" Pairs: values::labels, "{owner: kim}",
        "labels to find it by"),
    list!(tags "tag": values::few(blocks::MOST_ENTRIES, values::tags) => put::texts, "[baseline]",
        "tags to find it by"),
    one!(comment Value: values::any_text => put::text, "second try",
        "a comment on the job"),
    one!(run Rest: blocks::command => put::command, "python train.py --epochs 3",
        "the command: a script for the shell, or a list of a program and its arguments"),
];

/// A key that a job file does not have, and what its author may have meant.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown key `{name}`{hint}")]
pub(super) struct UnknownKey {
    name: String,
    hint: String,
}

pub(super) fn find(name: &str) -> std::result::Result<&'static Key, UnknownKey> {
    KEYS.iter().find(|key| key.name == name).ok_or_else(|| {
        let near = crate::error::did_you_mean(name, KEYS.iter().map(|key| key.name));
        let hint = match (near.is_empty(), elsewhere(name)) {
            (_, Some(elsewhere)) => format!("; {elsewhere}"),
            (false, None) => near,
            (true, None) => "; docs/job-file.md lists the keys of a job file".to_owned(),
        };
        UnknownKey { name: name.to_owned(), hint }
    })
}

/// What other tools call it.
const ELSEWHERE: &[(&str, &str)] = &[
    ("accelerators", "gpus"),
    ("command", "run"),
    ("commands", "run"),
    ("cmd", "run"),
    ("cpus", "cpu"),
    ("depends_on", "after"),
    ("dependency", "after"),
    ("entrypoint", "run"),
    ("envs", "env"),
    ("environment", "env"),
    ("mem", "memory"),
    ("max_duration", "time"),
    ("num_nodes", "nodes"),
    ("queue", "team"),
    ("script", "run"),
    ("spot_policy", "spot"),
    ("time_limit", "time"),
    ("use_spot", "spot"),
    ("working_dir", "workdir"),
];

fn elsewhere(name: &str) -> Option<String> {
    let found = ELSEWHERE.iter().find(|(other, _)| *other == name);
    found.map(|(_, ours)| format!("it is called `{ours}` here"))
}
