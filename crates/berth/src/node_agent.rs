//! `berth node-agent`: tells the figures of a node's GPUs where no exporter does.

use crate::fail::{Exit, Failure, Result};
use crate::up;
use berth_agent::{Options, Sampler, serve};
use berth_model::Span;
use berth_node::{Declared, GpuReader, GpuRecording, Nvidia, Probe, ReadGpus};
use clap::Args;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

const EVERY: &str = "10s";
const KUBELET: &str = "/var/lib/kubelet/pod-resources/kubelet.sock";

#[derive(Args, Debug)]
pub struct NodeAgent {
    /// The address to listen on; `:9400` is port 9400 on all addresses
    #[arg(long, value_name = "ADDR", default_value = ":9400")]
    pub listen: String,
    /// How often to measure GPUs
    #[arg(long, value_name = "TIME", default_value = EVERY)]
    pub every: String,
    /// The name of this node (its host name)
    #[arg(long, value_name = "NODE", env = "NODE_NAME")]
    pub node: Option<String>,
    /// The socket on which the kubelet lists the GPUs of pods
    #[arg(long, value_name = "SOCKET", default_value = KUBELET)]
    pub kubelet: PathBuf,
    /// Declare GPUs instead of measuring real ones, such as 8xH100 (for tests)
    #[arg(long, value_name = "DECL", requires = "gpu_recording")]
    pub gpus: Option<String>,
    /// What the declared GPUs report, as JSON; see docs/operate/gpu-health.md
    #[arg(long, value_name = "FILE", requires = "gpus")]
    pub gpu_recording: Option<PathBuf>,
}

pub fn run(args: &NodeAgent) -> Result<()> {
    up::start_logging(up::LogFormat::Text);
    let every = args.every.parse::<Span>().ok().filter(|every| *every >= Span::secs(1));
    let every = every.and_then(|every| u64::try_from(every.0).ok()).ok_or_else(|| {
        let found = &args.every;
        Failure::usage(format!("--every: found `{found}`, expected a second or more such as 10s"))
    })?;
    let options = Options {
        listen: listen(&args.listen)?,
        every: Duration::from_millis(every),
        kubelet: Some(args.kubelet.clone()),
    };
    let sampler = sampler(args)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::io("starting", &error))?;
    let served = runtime.block_on(async {
        let ready = |address| {
            up::say(&format!("The node agent serves metrics at http://{address}/metrics\n"))
        };
        tokio::select! {
            served = serve(options, sampler, ready) => served,
            () = up::asked_to_stop() => Ok(()),
        }
    });
    // A driver that hangs would keep the program from ending.
    runtime.shutdown_background();
    served.map_err(|error| Failure::new(Exit::Failed, up::chain(&error)))
}

fn sampler(args: &NodeAgent) -> Result<Sampler> {
    let node = args.node.clone().unwrap_or_else(up::host_name);
    if let (Some(gpus), Some(file)) = (&args.gpus, &args.gpu_recording) {
        let declared = gpus.parse::<Declared>();
        let declared = declared.map_err(|error| Failure::usage(format!("--gpus: {error}")))?;
        let devices = declared.devices();
        let recording = GpuRecording::open(file, devices.len());
        let recording = recording
            .map_err(|error| Failure::io(format!("reading {}", file.display()), &error))?;
        return Ok(Sampler::new(node, &devices, Box::new(recording)));
    }
    let (devices, nvidia) = (Probe::load().devices(), Nvidia::load());
    let reader: Box<dyn ReadGpus> = match nvidia {
        Some(nvidia) => Box::new(GpuReader::new(nvidia)),
        None => {
            let what = "there is no GPU, or no driver of NVIDIA that could be loaded";
            let next = "run the agent on nodes with GPUs, with NVIDIA_VISIBLE_DEVICES=all and \
                        NVIDIA_DRIVER_CAPABILITIES=utility, in the runtime class of NVIDIA";
            return Err(Failure::new(Exit::Failed, what.to_owned()).next(next));
        }
    };
    Ok(Sampler::new(node, &devices, reader))
}

/// An address, or a port on all addresses. A node may have no IPv6 at all.
fn listen(text: &str) -> Result<Vec<SocketAddr>> {
    match text.strip_prefix(':').and_then(|port| port.parse::<u16>().ok()) {
        Some(port) => {
            Ok(vec![(Ipv6Addr::UNSPECIFIED, port).into(), (Ipv4Addr::UNSPECIFIED, port).into()])
        }
        None => Ok(vec![up::address(text)?]),
    }
}
