//! `berth kube`: the server of a Kubernetes cluster.

use crate::fail::{BadValue, Failure, Result};
use crate::figure_flags::KeepFigureFlags;
use crate::kept::entry;
use crate::reach::Reach;
use crate::up::{self, Serving};
use berth_model::{Bytes, Span};
use berth_server::{
    ClusterOptions, Compat, FetchSettings, FigureSources, LeaseOptions, NodeData, Peer, PeerMap,
    Place, PodSettings, Started,
};
use clap::{Args, Subcommand};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;
use url::Url;

#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Kube {
    #[command(subcommand)]
    pub what: Option<KubeCommand>,
    #[command(flatten)]
    pub serving: Serving,
    /// The kubeconfig of the cluster (as kubectl finds it, or the cluster this runs in)
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,
    /// Schedule pods with this schedulerName; can be given several times
    #[arg(long, value_name = "NAME", default_value = "berth")]
    pub scheduler_name: Vec<String>,
    /// The queue of pods that do not name one
    #[arg(long, value_name = "QUEUE", default_value = "default")]
    pub queue: String,
    /// The namespace of the Lease for leader election (the server's own)
    #[arg(long, value_name = "NAMESPACE")]
    pub lease_namespace: Option<String>,
    /// The name of that Lease; each set of replicas needs its own
    #[arg(long, value_name = "NAME", default_value = "berth")]
    pub lease_name: String,
    /// How long a leader may be silent before another replica takes over
    #[arg(long, value_name = "TIME", default_value = LEASE_DURATION)]
    pub lease_duration: String,
    /// The namespace of the pods that hold shared GPUs
    #[arg(long, value_name = "NAME", default_value = "berth-reservations")]
    pub reservation_namespace: String,
    /// The image of those pods; it contains this program
    #[arg(long, value_name = "IMAGE", default_value = concat!("berth:", env!("CARGO_PKG_VERSION")))]
    pub reservation_image: String,
    /// Write no event on a pod when it is scheduled; events about pods that wait are written anyway
    #[arg(long)]
    pub no_scheduled_events: bool,
    /// The PriorityClass of those pods, so that the kubelet does not evict them first
    #[arg(long, value_name = "NAME")]
    pub reservation_priority: Option<String>,
    /// Take over from this scheduler: Berth schedules its pods, queues and groups, and manifests
    /// written for it stay as they are; can be given several times
    #[arg(long, value_name = "SCHEDULER", value_parser = Peer::NAMES)]
    pub stand_in: Vec<String>,
    /// A file that maps names of other schedulers and their queues to Berth's
    #[arg(long, value_name = "FILE")]
    pub map: Option<PathBuf>,
    /// Schedule only pods: refuse `berth run`, and need fewer rights
    #[arg(long, conflicts_with_all = ["image", "checkpoints", "teams", "fetch_image", "fetch_url", "node_data"])]
    pub no_jobs: bool,
    /// The image of jobs of `berth run` that do not name one
    #[arg(long, value_name = "IMAGE")]
    pub image: Option<String>,
    /// The PersistentVolumeClaim in each team's namespace for checkpoints
    #[arg(long, value_name = "CLAIM")]
    pub checkpoints: Option<String>,
    /// The image by which pods fetch the code that jobs were submitted with; it contains this program
    #[arg(long, value_name = "IMAGE")]
    pub fetch_image: Option<String>,
    /// The address at which pods reach this server for that (--public-url)
    #[arg(long, value_name = "URL")]
    pub fetch_url: Option<String>,
    /// A folder of each node that keeps the data of jobs for later ones, such as /var/lib/berth-data.
    /// Pods of jobs with data mount it as a hostPath
    #[arg(long, value_name = "FOLDER", value_parser = whole_path)]
    pub node_data: Option<String>,
    /// How much of the disk of a node this data may take, such as 500GiB
    #[arg(long, value_name = "SIZE", default_value = NODE_DATA)]
    pub node_data_size: String,
    /// The prefix of the namespaces of teams
    #[arg(long, value_name = "PREFIX", default_value = "berth-")]
    pub namespace_prefix: String,
    /// The namespace of a team, if it has another name; can be given several times
    #[arg(long, value_name = "TEAM=NAME", value_parser = of_team)]
    pub namespace: Vec<(String, String)>,
    /// Create a namespace for every team, not only for teams with jobs of `berth run`
    #[arg(long)]
    pub teams: bool,
    /// How often to read GPU metrics from exporters, such as 30s; 0 turns this off
    #[arg(long, value_name = "TIME", default_value = FIGURES_EVERY, env = "BERTH_FIGURES_EVERY")]
    pub figures_every: String,
    /// A label selector of pods that export GPU metrics; can be given several times, the first match
    /// wins (the labels of NVIDIA's charts and of Berth's)
    #[arg(long, value_name = "SELECTOR", value_parser = selector)]
    pub figures_selector: Vec<String>,
    /// A namespace with such pods; can be given several times (all but the namespaces of teams)
    #[arg(long, value_name = "NAMESPACE")]
    pub figures_namespace: Vec<String>,
    /// Their port (the port named `metrics`, or 9400)
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    pub figures_port: Option<u16>,
    #[command(flatten)]
    pub keep_figures: KeepFigureFlags,
    #[command(flatten)]
    pub reach: Reach,
}

fn of_team(text: &str) -> Result<(String, String), BadValue> {
    let wrong = || BadValue::new("expected TEAM=NAME, such as nlp=research");
    let (team, name) = text.split_once('=').ok_or_else(wrong)?;
    Ok((team.to_owned(), name.to_owned()))
}

fn whole_path(text: &str) -> Result<String, BadValue> {
    let is_plain = |part: Component<'_>| matches!(part, Component::RootDir | Component::Normal(_));
    let path = Path::new(text);
    let wrong = || BadValue::new("expected a path from the root, such as /var/lib/berth-data");
    let is_whole = path.is_absolute() && path.components().count() > 1;
    (is_whole && path.components().all(is_plain)).then(|| text.to_owned()).ok_or_else(wrong)
}

/// A label selector; the API server says what is wrong with one that has no odd letters.
fn selector(text: &str) -> Result<String, BadValue> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=!,() ".contains(c);
    let wrong = || BadValue::new("expected a label selector, such as app=nvidia-dcgm-exporter");
    (!text.trim().is_empty() && text.chars().all(plain)).then(|| text.to_owned()).ok_or_else(wrong)
}

const NODE_DATA: &str = "500GiB";
const LEASE_DURATION: &str = "15s";
const FIGURES_EVERY: &str = "30s";
/// As the chart of dcgm-exporter, the GPU operator and our own chart label their pods.
const FIGURES_SELECTORS: [&str; 3] = [
    "app.kubernetes.io/name=dcgm-exporter",
    "app=nvidia-dcgm-exporter",
    "app.kubernetes.io/name=berth-node-agent",
];

#[derive(Subcommand, Debug)]
pub enum KubeCommand {
    /// Print the definitions of Berth's objects, for `kubectl apply -f -`
    Crds,
}

pub fn run(args: Kube) -> Result<()> {
    if let Some(KubeCommand::Crds) = args.what {
        print!("{}", berth_server::crds());
        return Ok(());
    }
    let names = args.scheduler_name.join(", ");
    let peer =
        |name: &String| name.parse::<Peer>().map_err(|error| Failure::usage(error.to_string()));
    let peers = args.stand_in.iter().map(peer).collect::<Result<_>>()?;
    let map = args.map.as_deref().map(read_map).transpose()?.unwrap_or_default();
    let selectors = match &args.figures_selector[..] {
        [] => FIGURES_SELECTORS.map(str::to_owned).to_vec(),
        named => named.to_vec(),
    };
    let figures = FigureSources {
        figures: args.keep_figures.options(&args.figures_every)?,
        selectors: selectors.clone(),
        namespaces: args.figures_namespace.clone(),
        port: args.figures_port,
    };
    let fetch_url = fetch_url(&args)?;
    let node_data = node_data(&args)?;
    let mut config = vec![
        entry("stand-in", args.stand_in.join(", "), args.stand_in.is_empty()),
        entry("scheduler-name", names, args.scheduler_name == ["berth"]),
        entry("queue", args.queue.clone(), args.queue == "default"),
        entry("lease", args.lease_name.clone(), args.lease_name == "berth"),
        entry("lease-duration", args.lease_duration.clone(), args.lease_duration == LEASE_DURATION),
        entry("image", args.image.clone().unwrap_or_default(), args.image.is_none()),
        entry(
            "fetch-image",
            args.fetch_image.clone().unwrap_or_default(),
            args.fetch_image.is_none(),
        ),
        entry("fetch-url", fetch_url.clone().unwrap_or_default(), args.fetch_url.is_none()),
        entry("node-data", args.node_data.clone().unwrap_or_default(), args.node_data.is_none()),
        entry("figures-selector", selectors.join(" or "), args.figures_selector.is_empty()),
    ];
    config.extend(args.keep_figures.config(&args.figures_every, FIGURES_EVERY));
    let compat = Compat { peers, map };
    let ours = compat.scheduler_names(&args.scheduler_name);
    let scheduler = args.scheduler_name.first().map_or("berth", String::as_str);
    let webhook = args.reach.webhook(&args.serving, scheduler, ours.clone())?;
    let publish = args.reach.publish(&args.serving)?;
    let options = Box::new(ClusterOptions {
        kubeconfig: args.kubeconfig,
        context: args.context,
        scheduler_names: args.scheduler_name,
        queue: args.queue,
        compat,
        lease: LeaseOptions {
            namespace: args.lease_namespace,
            name: args.lease_name,
            duration: lease_duration(&args.lease_duration)?,
        },
        reservation_namespace: args.reservation_namespace,
        reservation_image: args.reservation_image,
        reservation_priority: args.reservation_priority,
        scheduled_events: !args.no_scheduled_events,
        jobs: PodSettings {
            are_off: args.no_jobs,
            image: args.image,
            checkpoints: args.checkpoints,
            namespace_prefix: args.namespace_prefix,
            namespaces: args.namespace.into_iter().collect(),
            teams: args.teams,
            node_data,
            fetch: FetchSettings {
                image: args.fetch_image,
                url: fetch_url,
                certificate: args.serving.tls_cert.clone(),
            },
        },
        figures,
        publish,
    });
    let place = Place::Cluster { options, webhook };
    up::serve(&args.serving, place, config, |started| greeting(started, &ours))
}

fn node_data(args: &Kube) -> Result<Option<NodeData>> {
    let Some(path) = args.node_data.clone() else { return Ok(None) };
    let most = crate::blob_flags::size("--node-data-size", &args.node_data_size)?;
    let most = Bytes(i64::try_from(most).unwrap_or(i64::MAX));
    Ok(Some(NodeData { path, most }))
}

/// Where pods reach the server: where browsers do, unless another address is given.
fn fetch_url(args: &Kube) -> Result<Option<String>> {
    let Some(text) = &args.fetch_url else {
        let public = args.serving.sign_in.public_url()?;
        return Ok(public.map(|url| url.as_str().trim_end_matches('/').to_owned()));
    };
    let url = Url::parse(text).ok();
    match url.filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host()) {
        Some(_) => Ok(Some(text.clone())),
        None => Err(Failure::usage(format!(
            "--fetch-url: found `{text}`, expected an address such as https://berth.berth.svc:7117"
        ))),
    }
}

/// Whole seconds, as a Lease has them.
fn lease_duration(text: &str) -> Result<Duration> {
    let span = text.parse::<Span>().ok().filter(|span| *span >= Span::secs(1));
    let seconds = span.and_then(|span| u64::try_from(span.0 / 1_000).ok());
    let wrong =
        || format!("--lease-duration: found `{text}`, expected a second or more, such as 15s");
    seconds.map(Duration::from_secs).ok_or_else(|| Failure::usage(wrong()))
}

fn read_map(path: &Path) -> Result<PeerMap> {
    let text = fs::read_to_string(path);
    let text = text.map_err(|error| Failure::io(format!("reading {}", path.display()), &error))?;
    let what = "it has schedulers, a list of names, and queues, names of others to ours";
    text.parse::<PeerMap>()
        .map_err(|error| Failure::usage(format!("{}: {error}", path.display())).next(what))
}

fn greeting(started: &Started, ours: &BTreeSet<String>) -> String {
    let webhook = started
        .webhook
        .map_or_else(String::new, |webhook| format!("  webhook   https://{webhook}/mutate\n"));
    let names = ours.iter().map(String::as_str).collect::<Vec<_>>().join(" or ");
    let (url, gpus, database) = (&started.url, &started.gpus, &started.database);
    let token = started.token.display();
    format!(
        "\
Berth is ready at {url}
  portal    {url}/ (in a browser; sign in with the token)
  GPUs      {gpus}
  database  {database}
  token     {token} (found by the command line)
{webhook}
It schedules the pods that name it (schedulerName: {names}).
Try, in another terminal:
  berth ps                          see what runs and what waits
  berth why JOB                     see why it waits, and until when
  berth nodes                       see what is free
"
    )
}
