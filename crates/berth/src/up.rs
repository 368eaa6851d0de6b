//! `berth up`: the server on this machine.

use crate::blob_flags::{BlobFlags, size};
use crate::fail::{Exit, Failure, Result};
use crate::figure_flags::KeepFigureFlags;
use crate::kept::{FOREVER, entry, keep, keep_any, keep_size};
use crate::sign_in_flags::SignInFlags;
use berth_api::wire::ConfigEntry;
use berth_model::{Micros, Name};
use berth_node::{
    Declared, Isolation, Launcher, NoSandbox, OpenFiles, PowerCaps, Wanted, hides_abstract_sockets,
};
use berth_server::{
    CheckAtStart, ConnectionLimits, ExportPlace, KeepOutput, Options, Place, Stage, Started, Tls,
};
use clap::Args;
use ipnet::IpNet;
use std::collections::BTreeMap;
use std::io::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::EnvFilter;

/// How long things are kept one by one where nobody says otherwise.
const KEEP: &str = "90d";
/// And the output of ended jobs.
const KEEP_OUTPUT: &str = "30d";
const KEEP_OUTPUT_SIZE: &str = "50GiB";
const KEEP_DELETED_RUNS: &str = "30d";
const FIGURES_EVERY: &str = "5s";
const DATA_CACHE: &str = "500GiB";

#[derive(Args, Debug)]
pub struct Up {
    #[command(flatten)]
    pub serving: Serving,
    /// Declare GPUs instead of using real ones, such as 8xH100
    #[arg(long, value_name = "DECL")]
    pub gpus: Option<String>,
    /// Let declared GPUs report the figures and faults of a JSON file, for demonstrations and tests;
    /// see docs/figures.md
    #[arg(long, value_name = "FILE", requires = "gpus")]
    pub gpu_recording: Option<PathBuf>,
    /// The power limit of each GPU, such as 500W, or by model H200=500W,L4=60W
    #[arg(long, value_name = "CAPS", env = "BERTH_POWER_CAP")]
    pub power_cap: Option<String>,
    /// Which GPUs to check at startup, before they take work: `new` checks GPUs that are new to the
    /// machine and GPUs that had failed, `never` checks none
    #[arg(long, value_enum, default_value = "new", env = "BERTH_GPU_CHECK")]
    pub gpu_check: GpuCheckFlag,
    /// Start tasks without cgroups, so that CPU and memory limits are not enforced
    #[arg(long)]
    pub no_cgroups: bool,
    /// How to isolate jobs from each other and from the server: `strict` uses the strictest isolation
    /// that the machine allows, `required` refuses to start without isolation, and with `none` every
    /// job can reach what the server can
    #[arg(long, value_enum, default_value = "strict", env = "BERTH_ISOLATION")]
    pub isolation: IsolationFlag,
    /// A folder of this machine that all jobs may use as a volume or working directory, as far as its
    /// permissions for others allow. Only needed without root, where all jobs run as the server's
    /// account. Can be given several times
    #[arg(long, value_name = "DIR")]
    pub share: Vec<PathBuf>,
    /// How long to keep the output of ended jobs, such as 30d, or `forever`
    #[arg(long, value_name = "TIME", default_value = KEEP_OUTPUT, env = "BERTH_KEEP_OUTPUT")]
    pub keep_output: String,
    /// How much output of ended jobs to keep for each team, such as 50GiB; the oldest is deleted first.
    /// `all` sets no limit
    #[arg(
        long, value_name = "SIZE", default_value = KEEP_OUTPUT_SIZE, env = "BERTH_KEEP_OUTPUT_SIZE"
    )]
    pub keep_output_size: String,
    /// How long to keep the folders of ended jobs, with their checkpoints, after the last change, such
    /// as 180d
    #[arg(long, value_name = "TIME", default_value = FOREVER, env = "BERTH_KEEP_FOLDERS")]
    pub keep_folders: String,
    /// How often to measure GPUs and tasks, such as 5s; 0 turns this off
    #[arg(long, value_name = "TIME", default_value = FIGURES_EVERY, env = "BERTH_FIGURES_EVERY")]
    pub figures_every: String,
    /// How much copies of data for jobs may take on this machine, such as 500GiB; the data that no job
    /// has used for longest is deleted first
    #[arg(long, value_name = "SIZE", default_value = DATA_CACHE, env = "BERTH_DATA_CACHE")]
    pub data_cache: String,
    #[command(flatten)]
    pub keep_figures: KeepFigureFlags,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum GpuCheckFlag {
    New,
    Never,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum IsolationFlag {
    Strict,
    Required,
    None,
}

/// What every server has to know, wherever its jobs run.
#[derive(Args, Debug)]
pub struct Serving {
    /// The folder for the database, logs and keys (~/.berth)
    #[arg(long, value_name = "DIR", env = "BERTH_HOME")]
    pub home: Option<PathBuf>,
    /// The address to listen on; all but loopback need TLS
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:7117", env = "BERTH_LISTEN")]
    pub listen: String,
    /// The certificate of the server, as PEM
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,
    /// The key of the certificate, as PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
    /// Use PostgreSQL instead of the database in the home: postgres://…
    #[arg(long, value_name = "URL", env = "BERTH_DATABASE", hide_env_values = true)]
    pub database: Option<String>,
    /// The key that encrypts secrets (a file in the home); replicas share one
    #[arg(long, value_name = "FILE", env = "BERTH_KEY")]
    pub key: Option<PathBuf>,
    /// The key that signs the audit log (a file in the home); replicas share one
    #[arg(long, value_name = "FILE", env = "BERTH_AUDIT_KEY")]
    pub audit_key: Option<PathBuf>,
    /// Export the audit log as it grows: to a file by its whole path, or to syslog:,
    /// syslog:udp://host:514 or syslog:tcp://host:601. Can be given several times
    #[arg(long, value_name = "PLACE")]
    pub audit_export: Vec<ExportPlace>,
    /// A private network to which notifications may be sent, such as 10.0.0.0/8. Can be given several
    /// times
    #[arg(long, value_name = "CIDR")]
    pub notify_allow: Vec<IpNet>,
    /// The name of this machine (its host name)
    #[arg(long, value_name = "NODE")]
    pub name: Option<String>,
    /// Prices by GPU model, as YAML
    #[arg(long, value_name = "FILE")]
    pub prices: Option<PathBuf>,
    /// How long to keep single leases, cost rows and events, such as 90d, or `forever`; sums stay
    /// exact
    #[arg(long, value_name = "TIME", default_value = KEEP, env = "BERTH_KEEP")]
    pub keep: String,
    /// Grams of CO2 per kWh, such as 380; with it, costs include the CO2 of jobs
    #[arg(long, value_name = "GRAMS", env = "BERTH_CARBON_INTENSITY",
        value_parser = clap::value_parser!(i64).range(0..=10_000))]
    pub carbon_intensity: Option<i64>,
    /// The format of the server's log
    #[arg(long, value_enum, default_value = "text")]
    pub log_format: LogFormat,
    /// The most connections at once; fewer if the system allows fewer open files
    #[arg(long, value_name = "N", default_value_t = ConnectionLimits::ALL as u32,
        value_parser = clap::value_parser!(u32).range(1..), env = "BERTH_MAX_CONNECTIONS")]
    pub max_connections: u32,
    /// The most connections at once from one address of another machine
    #[arg(long, value_name = "N", default_value_t = ConnectionLimits::PER_ADDRESS as u32,
        value_parser = clap::value_parser!(u32).range(1..), env = "BERTH_MAX_CONNECTIONS_PER_ADDRESS")]
    pub max_connections_per_address: u32,
    /// How long users can restore deleted experiments and runs, such as 30d, or `forever`; after that,
    /// Berth removes them, except runs that a version of a model names
    #[arg(long, value_name = "TIME", default_value = KEEP_DELETED_RUNS,
        env = "BERTH_KEEP_DELETED_RUNS")]
    pub keep_deleted_runs: String,
    #[command(flatten)]
    pub blobs: BlobFlags,
    #[command(flatten)]
    pub sign_in: SignInFlags,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum LogFormat {
    Text,
    Json,
}

/// Runs the server until a signal stops it. Jobs go on without it.
pub fn run(up: &Up) -> Result<()> {
    let gpus = up.gpus.as_deref().map(str::parse::<Declared>).transpose();
    let gpus = gpus.map_err(|error| Failure::usage(format!("--gpus: {error}")))?;
    let power = up.power_cap.as_deref().map(str::parse::<PowerCaps>).transpose();
    let power = power.map_err(|error| Failure::usage(format!("--power-cap: {error}")))?;
    let power = power.unwrap_or_default();
    let exe =
        std::env::current_exe().map_err(|error| Failure::io("finding this program", &error))?;
    let files = OpenFiles::raise();
    let place = Place::Machine {
        gpus,
        recording: up.gpu_recording.clone(),
        power: power.clone(),
        gpu_check: match up.gpu_check {
            GpuCheckFlag::New => CheckAtStart::New,
            GpuCheckFlag::Never => CheckAtStart::Never,
        },
        launcher: Launcher { exe, args: vec![crate::HELPER.into(), files.word()] },
        cgroups: !up.no_cgroups,
        isolation: match up.isolation {
            IsolationFlag::Strict => Wanted::Strictest,
            IsolationFlag::Required => Wanted::Required,
            IsolationFlag::None => Wanted::Off,
        },
        shares: up.share.clone(),
        keep_output: KeepOutput {
            age: keep("--keep-output", &up.keep_output)?,
            size: keep_size("--keep-output-size", &up.keep_output_size)?,
            folders: keep("--keep-folders", &up.keep_folders)?,
        },
        figures: up.keep_figures.options(&up.figures_every)?,
        data_cache: size("--data-cache", &up.data_cache)?,
    };
    let shown = up.gpus.clone().unwrap_or_else(|| "as found".to_owned());
    let kept = |key: &str, value: &String, usual: &str| entry(key, value.clone(), value == usual);
    let shared: Vec<_> = up.share.iter().map(|path| path.display()).collect();
    let mut config = vec![
        list_entry("share", &shared),
        entry("gpus", shown, up.gpus.is_none()),
        entry("power-cap", power.to_string(), up.power_cap.is_none()),
        match up.gpu_check {
            GpuCheckFlag::New => entry("gpu-check", "new".to_owned(), true),
            GpuCheckFlag::Never => entry("gpu-check", "never".to_owned(), false),
        },
        kept("keep-output", &up.keep_output, KEEP_OUTPUT),
        kept("keep-output-size", &up.keep_output_size, KEEP_OUTPUT_SIZE),
        kept("keep-folders", &up.keep_folders, FOREVER),
        kept("data-cache", &up.data_cache, DATA_CACHE),
    ];
    config.extend(up.keep_figures.config(&up.figures_every, FIGURES_EVERY));
    serve(&up.serving, place, config, greeting)
}

/// Runs a server wherever its jobs run.
pub fn serve(
    serving: &Serving,
    place: Place,
    config: Vec<ConfigEntry>,
    greeting: impl Fn(&Started) -> String,
) -> Result<()> {
    start_logging(serving.log_format);
    let options = options(serving, place, config)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| Failure::io("starting", &error))?;
    let (stop, stopped) = tokio::sync::watch::channel(false);
    runtime.spawn(async move {
        asked_to_stop().await;
        let _ = stop.send(true);
    });
    let tell = |stage: Stage<'_>| match stage {
        Stage::Ready(started) => say(&greeting(started)),
        Stage::StandsBy { url, leader } => {
            say(&format!("Berth stands by at {url}: {leader} leads\n"));
        }
    };
    let served = runtime.block_on(berth_server::serve(options, stopped, &tell));
    runtime.shutdown_timeout(Duration::from_secs(2));
    served.map_err(|error| Failure::new(Exit::Failed, chain(&error)))
}

pub async fn asked_to_stop() {
    let terminated = async {
        match signal(SignalKind::terminate()) {
            Ok(mut signal) => {
                signal.recv().await;
            }
            Err(_) => std::future::pending().await,
        }
    };
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        () = terminated => {}
    }
}

/// What is wrong, with what it comes from.
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let more = cause.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        source = cause.source();
    }
    text
}

fn list_entry(key: &str, values: &[impl ToString]) -> ConfigEntry {
    let shown: Vec<String> = values.iter().map(ToString::to_string).collect();
    let shown = if shown.is_empty() { "none".to_owned() } else { shown.join(", ") };
    entry(key, shown, values.is_empty())
}

fn options(up: &Serving, place: Place, more: Vec<ConfigEntry>) -> Result<Options> {
    let home = home(up.home.as_deref())?;
    let listen = address(&up.listen)?;
    let tls = up.tls_cert.clone().zip(up.tls_key.clone());
    let node = up.name.clone().unwrap_or_else(host_name);
    let connections = ConnectionLimits::new(
        up.max_connections as usize,
        up.max_connections_per_address as usize,
        // The database, jobs and connections all need some.
        OpenFiles::raise().now,
    );
    let mut config = vec![
        entry("home", home.display().to_string(), up.home.is_none()),
        entry("listen", up.listen.clone(), false),
        entry("database", database_shown(up.database.as_deref()), up.database.is_none()),
        entry("name", node.clone(), up.name.is_none()),
        entry("keep", up.keep.clone(), up.keep == KEEP),
        entry(
            "carbon-intensity",
            up.carbon_intensity.map_or_else(|| "unknown".to_owned(), |grams| grams.to_string()),
            up.carbon_intensity.is_none(),
        ),
        list_entry("audit export", &up.audit_export),
        list_entry("notify allow", &up.notify_allow),
        entry(
            "max_connections",
            connections.all.to_string(),
            up.max_connections == ConnectionLimits::ALL as u32,
        ),
        entry(
            "max_connections_per_address",
            connections.per_address.to_string(),
            up.max_connections_per_address == ConnectionLimits::PER_ADDRESS as u32,
        ),
    ];
    let kept = up.keep_deleted_runs.clone();
    config.push(entry("keep-deleted-runs", kept, up.keep_deleted_runs == KEEP_DELETED_RUNS));
    config.extend(up.blobs.config());
    config.extend(up.sign_in.config());
    config.extend(more);
    Ok(Options {
        home,
        listen,
        tls: tls.map(|(certificate, key)| Tls { certificate, key }),
        connections,
        database: up.database.clone(),
        key: up.key.clone(),
        audit_key: up.audit_key.clone(),
        audit_exports: up.audit_export.clone(),
        notify_allow: up.notify_allow.clone(),
        node,
        place,
        prices: prices(up)?,
        keep: keep("--keep", &up.keep)?,
        blobs: up.blobs.options()?,
        keep_deleted_runs: keep_any("--keep-deleted-runs", &up.keep_deleted_runs)?,
        sessions: up.sign_in.sessions()?,
        public_url: up.sign_in.public_url()?,
        oidc: up.sign_in.oidc(),
        admin: user_name(),
        carbon_intensity: up.carbon_intensity,
        config,
    })
}

pub fn address(text: &str) -> Result<SocketAddr> {
    let wrong = || format!("`{text}` is no address; expected one such as 127.0.0.1:7117");
    text.parse().map_err(|_| Failure::usage(wrong()))
}

/// The address without what comes before the host: there may be a password in it.
fn database_shown(url: Option<&str>) -> String {
    match url.and_then(|url| url.split_once("://")) {
        None => "sqlite, in the home".to_owned(),
        Some((scheme, rest)) => {
            let host = rest.rsplit_once('@').map_or(rest, |(_, host)| host);
            // Parameters may have a password, too.
            let host = host.split_once('?').map_or(host, |(host, _)| host);
            format!("{scheme}://{host}")
        }
    }
}

/// Dollars per GPU-hour: a YAML file of models with numbers.
fn prices(up: &Serving) -> Result<BTreeMap<Name, Micros>> {
    let Some(path) = &up.prices else { return Ok(BTreeMap::new()) };
    let text = std::fs::read_to_string(path)
        .map_err(|error| Failure::io(format!("reading {}", path.display()), &error))?;
    let bad = |why: String| Failure::usage(format!("{}: {why}", path.display()));
    let read: BTreeMap<String, f64> =
        serde_saphyr::from_str(&text).map_err(|error| bad(error.to_string()))?;
    let mut prices = BTreeMap::new();
    for (model, dollars) in read {
        let micros = (dollars * 1e6).round();
        if !(0.0..1e12).contains(&micros) {
            return Err(bad(format!(
                "the price of {model} is {dollars}, expected dollars an hour"
            )));
        }
        prices.insert(Name::new(&model), Micros(micros as i64));
    }
    Ok(prices)
}

/// The folder that was named, or the one of whoever asks.
pub fn home(named: Option<&Path>) -> Result<PathBuf> {
    let own = || std::env::home_dir().map(|home| home.join(".berth"));
    let home = named.map(Path::to_owned).or_else(own);
    home.ok_or_else(|| Failure::usage("there is no home folder; set one with --home"))
}

pub fn host_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name = name.trim();
    if name.is_empty() { "localhost".to_owned() } else { name.to_owned() }
}

/// Who runs this: the first admin is whoever starts the server.
pub fn user_name() -> String {
    let named = ["USER", "LOGNAME"].iter().find_map(|name| std::env::var(name).ok());
    named.filter(|name| !name.is_empty()).unwrap_or_else(|| "admin".to_owned())
}

pub fn start_logging(format: LogFormat) {
    // The client's own lines say again what ours say with what was asked for.
    let usual = || EnvFilter::new("warn,kube_client=off");
    let filter = EnvFilter::try_from_env("BERTH_LOG").unwrap_or_else(|_| usual());
    let logs = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    match format {
        LogFormat::Text => logs.init(),
        LogFormat::Json => logs.json().init(),
    }
}

/// Says something to whoever began this. They may have gone since, and a server goes on without
/// them.
pub fn say(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

fn isolation(isolation: &Isolation) -> String {
    let sockets = match isolation.is_on() && !hides_abstract_sockets() {
        true => {
            "            (jobs reach abstract sockets of this machine: Linux 6.12 closes them)\n"
        }
        false => "",
    };
    match isolation {
        Isolation::Sandbox { accounts: true } => {
            format!("  isolation each job in a sandbox, each user with an own account\n{sockets}")
        }
        Isolation::Sandbox { accounts: false } => format!(
            "  isolation each job in a sandbox, all with this account (as root, each user has an own one)\n\
             {sockets}"
        ),
        Isolation::Off { why: NoSandbox::SwitchedOff } => {
            "  WARNING   jobs are not isolated: each can reach what this server can\n".to_owned()
        }
        Isolation::Off { why } => format!(
            "  WARNING   jobs are not isolated, and each can reach what this server can: {why}\n"
        ),
    }
}

/// What the first minute needs.
fn greeting(started: &Started) -> String {
    let declared =
        if started.declared { " (declared: jobs run for real, the GPUs do not exist)" } else { "" };
    let limits = started.unlimited.as_ref().map_or_else(String::new, |why| {
        let what = match &started.isolation {
            Some(Isolation::Sandbox { .. }) => "memory is limited for each process, CPU is not",
            _ => "CPU and memory of jobs are not limited",
        };
        format!("  limits    {what}: {why}\n")
    });
    let isolation = started.isolation.as_ref().map_or_else(String::new, isolation);
    let run = if started.has_gpus {
        "  berth run -g 1 -- hostname        run something on one GPU"
    } else {
        "  berth run -- hostname             run something (no GPU; declare some with --gpus)"
    };
    let (url, gpus, database) = (&started.url, &started.gpus, &started.database);
    let token = started.token.display();
    format!(
        "\
Berth is ready at {url}
  portal    {url}/ (in a browser; sign in with the token)
  GPUs      {gpus}{declared}
  database  {database}
  token     {token} (found by the command line)
{isolation}{limits}
Try, in another terminal:
{run}
  berth ps                          list jobs
  berth gpus                        list free GPUs

Stop with Ctrl-C; running jobs continue, and the next `berth up` finds them again.
"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_settings_show_no_password_of_a_database() {
        for url in [
            "postgres://berth:hush@db:5432/berth",
            "postgres://db:5432/berth?user=berth&password=hush",
        ] {
            assert_eq!(database_shown(Some(url)), "postgres://db:5432/berth");
        }
    }
}
