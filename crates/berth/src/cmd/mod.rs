//! The commands, a file for each family.

mod apply;
mod attach;
mod audit;
mod budget;
mod code;
mod completion;
mod config;
mod control;
mod cost;
mod cost_more;
mod data;
mod data_push;
mod debug;
mod deletion;
mod describe;
mod doctor;
mod documents;
mod events;
mod export;
mod files;
mod flags;
mod gpu_check;
mod gpu_history;
mod identity;
mod job_columns;
mod job_end;
mod lineage;
mod log_search;
mod login;
mod logs;
mod machines;
mod metrics;
mod plan;
mod policy;
mod preview;
mod ps;
mod queues;
mod reproduce;
mod returns;
mod run;
mod runs;
mod schedule;
mod secret;
mod session;
mod shell;
mod storage;
mod template;
mod timeline;
mod token;
mod top;
mod tracker;
mod tracking;
mod transfer;
mod volume;
mod webhooks;
mod when;
mod why;

#[cfg(test)]
pub mod tests;

pub use completion::VARIABLE as COMPLETE;

use crate::context::Context;
use crate::fail::Result;
use crate::{fetch_code, kube, node_agent, reserve, restore, sim, up};
use clap::Subcommand;

#[derive(Subcommand)]
pub enum Command {
    /// Start the server on this machine
    Up(Box<up::Up>),
    /// Start the server of a Kubernetes cluster
    Kube(Box<kube::Kube>),
    /// Hold the GPU of this pod, which other pods share (used by Berth itself)
    Reserve(reserve::Reserve),
    /// Fetch the code and data of the job of this pod, before its command starts (used by Berth itself)
    FetchCode(fetch_code::FetchCode),
    /// Export GPU metrics of a Kubernetes node that has no NVIDIA exporter
    NodeAgent(node_agent::NodeAgent),
    /// Restore a backup into an empty database while no server runs
    Restore(restore::Restore),
    #[command(flatten)]
    Client(ClientCommand),
    /// Simulate scheduling without a cluster
    #[command(subcommand, arg_required_else_help = true)]
    Sim(sim::Sim),
}

/// What asks the server, or about it.
#[derive(Subcommand, Debug)]
pub enum ClientCommand {
    /// Run a job and show its output
    #[command(override_usage = RUN_USAGE)]
    Run(Box<run::Run>),
    /// Show where and when a job would run and what it would cost, without running it
    #[command(override_usage = PLAN_USAGE)]
    Plan(Box<run::Plan>),
    /// List jobs
    Ps(ps::Ps),
    /// Show all about a job: request, attempts, who preempted it, places, events, cost and file
    #[command(visible_alias = "show")]
    Describe(describe::Describe),
    /// Show what happened to jobs, nodes and teams
    Events(events::Events),
    /// Explain why a job waits, until when, and what would start it sooner
    Why(why::Why),
    /// Show the output of a job
    Logs(logs::Logs),
    /// Show when a job waited, ran and was preempted, and by which job
    Timeline(timeline::TimelineArgs),
    /// List the files in the folder of a job
    Files(files::Files),
    /// Copy a file out of the folder of a job
    Cp(files::Copy),
    /// Fetch the files that a job was submitted with
    Code(code::Code),
    /// Show metrics of a job and its GPUs over time
    Metrics(metrics::Metrics),
    /// Open a terminal in a running job
    Shell(shell::Shell),
    /// Show GPUs, jobs and queues live
    Top(top::Top),
    /// Stop jobs
    Stop(control::Stop),
    /// Checkpoint and stop jobs until they are resumed
    Pause(control::Jobs),
    /// Resume paused or held jobs
    Resume(control::Jobs),
    /// Submit the job file of a job again, with changes
    #[command(override_usage = CLONE_USAGE)]
    Clone(Box<control::Clone>),
    /// Change priority, time, deadline, team or hold of a job
    Set(control::Set),
    /// Show queues, or the jobs that wait in one
    Queue(queues::Queue),
    /// Show the fair share of each queue, and why
    Share(queues::Share),
    /// Show GPUs and which are free
    Gpus(machines::Gpus),
    /// Show which jobs had, have and will get which GPUs
    Leases(timeline::Leases),
    /// Test a GPU of this machine against the specification of its model, without a server
    GpuCheck(gpu_check::GpuCheck),
    /// Show nodes
    Nodes(machines::Nodes),
    /// Take nodes out of service and move their jobs elsewhere
    Drain(machines::DrainArgs),
    /// Stop scheduling new work on nodes
    Cordon(machines::CordonArgs),
    /// Put nodes or GPUs back into service
    Uncordon(machines::UncordonArgs),
    /// Show the policy, compare it with a file, and list who changed it
    #[command(subcommand, arg_required_else_help = true)]
    Policy(policy::Policy),
    /// Show costs
    Cost(cost::Cost),
    /// List, set and delete budgets
    #[command(subcommand, arg_required_else_help = true)]
    Budget(budget::Budget),
    /// Apply files of teams, queues, policy, budgets, prices and projects
    Apply(apply::Apply),
    /// Show what `berth apply` would change
    Diff(apply::Diff),
    /// Sign in with a browser and save the token
    Login(login::Login),
    /// Revoke the token of `berth login` and delete it
    Logout,
    /// List and sign out browser sessions
    #[command(subcommand, arg_required_else_help = true)]
    Session(session::Session),
    /// Create, list and revoke tokens
    #[command(subcommand, arg_required_else_help = true)]
    Token(token::Token),
    /// List, add and delete users
    #[command(subcommand, arg_required_else_help = true)]
    User(identity::User),
    /// List, add and delete teams
    #[command(subcommand, arg_required_else_help = true)]
    Team(identity::Team),
    /// List, add and remove members of a team
    #[command(subcommand, arg_required_else_help = true)]
    Member(identity::Member),
    /// List, add and delete projects
    #[command(subcommand, arg_required_else_help = true)]
    Project(identity::Project),
    /// Set, list and delete secrets of teams
    #[command(subcommand, arg_required_else_help = true)]
    Secret(secret::Secret),
    /// List, create and delete named volumes of teams
    #[command(subcommand, arg_required_else_help = true)]
    Volume(volume::Volume),
    /// List, share and delete experiments, and show their cost and results
    Experiments(Box<tracking::Experiments>),
    /// List, show and compare runs of experiments
    Runs(Box<runs::Runs>),
    /// List registered models and their versions, and set aliases
    #[command(subcommand, arg_required_else_help = true)]
    Models(tracking::Models),
    /// Show inputs and outputs of a model, run, job or version of data; with `-o openlineage` as events
    /// of OpenLineage
    Lineage(lineage::Lineage),
    /// Show how to repeat the run of a job and what has changed since, or submit it again
    Reproduce(reproduce::Reproduce),
    /// Import experiments, runs and models from another server, database or folder
    #[command(subcommand, arg_required_else_help = true)]
    Import(transfer::Import),
    /// Export experiments, runs and models
    #[command(subcommand, arg_required_else_help = true)]
    Export(transfer::Export),
    /// Push data, name versions of it, compare and fetch them
    #[command(subcommand, arg_required_else_help = true)]
    Data(data::Data),
    /// Show and limit what artifacts, data and code of teams take
    #[command(subcommand, arg_required_else_help = true)]
    Storage(storage::Storage),
    /// Save, show and delete templates of job files
    #[command(subcommand, arg_required_else_help = true)]
    Template(template::Template),
    /// List, pause and delete schedules
    #[command(subcommand, arg_required_else_help = true)]
    Schedule(schedule::Schedule),
    /// Show and verify the audit log
    #[command(subcommand, arg_required_else_help = true)]
    Audit(audit::Audit),
    /// Write a backup next to the server's database
    Backup,
    /// Export the internal state of the server
    #[command(subcommand, arg_required_else_help = true)]
    Debug(debug::Debug),
    /// Show your identity and permissions
    Whoami,
    /// Check the server, this machine or a cluster, and say what to do
    Doctor(doctor::Doctor),
    /// Show settings and where they come from
    #[command(subcommand, arg_required_else_help = true)]
    Config(config::Config),
    /// Print or install the completion of commands and names for a shell
    Completion(completion::Completion),
}

const RUN_USAGE: &str = "berth run [OPTIONS] [@TEMPLATE] [-f FILE] [-- COMMAND...]";
const PLAN_USAGE: &str = "berth plan [OPTIONS] [@TEMPLATE] [-f FILE] [-- COMMAND...]";
const CLONE_USAGE: &str = "berth clone [OPTIONS] JOB [-- COMMAND...]";

pub async fn run(context: &Context, args: ClientCommand) -> Result<()> {
    match args {
        ClientCommand::Run(args) => run::run(context, &args).await,
        ClientCommand::Plan(args) => run::plan(context, &args).await,
        ClientCommand::Ps(args) => ps::run(context, &args).await,
        ClientCommand::Describe(args) => describe::run(context, &args).await,
        ClientCommand::Events(args) => events::run(context, &args).await,
        ClientCommand::Why(args) => why::run(context, &args).await,
        ClientCommand::Logs(args) => logs::run(context, &args).await,
        ClientCommand::Timeline(args) => timeline::timeline(context, &args).await,
        ClientCommand::Files(args) => files::files(context, &args).await,
        ClientCommand::Cp(args) => files::copy(context, &args).await,
        ClientCommand::Code(args) => code::code(context, &args).await,
        ClientCommand::Leases(args) => timeline::leases(context, &args).await,
        ClientCommand::Metrics(args) => metrics::run(context, &args).await,
        ClientCommand::Shell(args) => shell::run(context, &args).await,
        ClientCommand::Top(args) => top::run(context, &args).await,
        ClientCommand::Stop(args) => control::stop(context, &args).await,
        ClientCommand::Pause(args) => control::pause(context, &args).await,
        ClientCommand::Resume(args) => control::resume(context, &args).await,
        ClientCommand::Clone(args) => control::clone(context, &args).await,
        ClientCommand::Set(args) => control::set(context, &args).await,
        ClientCommand::Queue(args) => queues::queue(context, &args).await,
        ClientCommand::Share(args) => queues::share(context, &args).await,
        ClientCommand::Gpus(args) => machines::gpus(context, &args).await,
        ClientCommand::GpuCheck(args) => gpu_check::run(context, &args),
        ClientCommand::Nodes(args) => machines::nodes(context, &args).await,
        ClientCommand::Drain(args) => machines::drain(context, &args).await,
        ClientCommand::Cordon(args) => machines::cordon(context, &args).await,
        ClientCommand::Uncordon(args) => machines::uncordon(context, &args).await,
        ClientCommand::Policy(args) => policy::run(context, &args).await,
        ClientCommand::Cost(args) => cost::run(context, &args).await,
        ClientCommand::Budget(args) => budget::run(context, &args).await,
        ClientCommand::Apply(args) => apply::apply(context, &args).await,
        ClientCommand::Diff(args) => apply::diff(context, &args).await,
        ClientCommand::Login(args) => login::login(context, &args).await,
        ClientCommand::Logout => login::logout(context).await,
        ClientCommand::Session(args) => session::run(context, &args).await,
        ClientCommand::Token(args) => token::run(context, &args).await,
        ClientCommand::User(args) => identity::user(context, &args).await,
        ClientCommand::Team(args) => identity::team(context, &args).await,
        ClientCommand::Member(args) => identity::member(context, &args).await,
        ClientCommand::Project(args) => identity::project(context, &args).await,
        ClientCommand::Secret(args) => secret::run(context, &args).await,
        ClientCommand::Volume(args) => volume::run(context, &args).await,
        ClientCommand::Experiments(args) => tracking::experiments(context, &args).await,
        ClientCommand::Runs(args) => runs::run(context, &args).await,
        ClientCommand::Models(args) => tracking::models(context, &args).await,
        ClientCommand::Lineage(args) => lineage::run(context, &args).await,
        ClientCommand::Reproduce(args) => reproduce::run(context, &args).await,
        ClientCommand::Import(args) => transfer::import(context, &args).await,
        ClientCommand::Export(args) => transfer::export(context, &args).await,
        ClientCommand::Data(args) => data::run(context, &args).await,
        ClientCommand::Storage(args) => storage::run(context, &args).await,
        ClientCommand::Template(args) => template::run(context, &args).await,
        ClientCommand::Schedule(args) => schedule::run(context, &args).await,
        ClientCommand::Audit(args) => audit::run(context, &args).await,
        ClientCommand::Backup => debug::backup(context).await,
        ClientCommand::Debug(args) => debug::run(context, &args).await,
        ClientCommand::Whoami => identity::whoami(context).await,
        ClientCommand::Doctor(args) => doctor::run(context, &args).await,
        ClientCommand::Config(args) => config::run(context, &args).await,
        ClientCommand::Completion(args) => completion::run(&args),
    }
}
