//! `berth kube`: the server of a Kubernetes cluster.

use crate::fail::Result;
use crate::up::{self, Serving};
use berth_server::{ClusterOptions, Place, Started};
use clap::Args;
use std::path::PathBuf;

#[derive(Args, Debug)]
pub struct Kube {
    #[command(flatten)]
    pub serving: Serving,
    /// The cluster; by default as kubectl finds it, or the one this runs in
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,
    /// Pods that name this as their scheduler are Berth's; may be given several times
    #[arg(long, value_name = "NAME", default_value = "berth")]
    pub scheduler_name: Vec<String>,
    /// The queue of pods that name none
    #[arg(long, value_name = "QUEUE", default_value = "default")]
    pub queue: String,
}

pub fn run(asked: Kube) -> Result<()> {
    let names = asked.scheduler_name.join(", ");
    let config = vec![
        up::entry("scheduler-name", names, asked.scheduler_name == ["berth"]),
        up::entry("queue", asked.queue.clone(), asked.queue == "default"),
    ];
    let place = Place::Cluster(ClusterOptions {
        kubeconfig: asked.kubeconfig,
        context: asked.context,
        scheduler_names: asked.scheduler_name,
        queue: asked.queue,
    });
    up::serve(&asked.serving, place, config, greet)
}

fn greet(started: &Started) {
    println!("Berth is ready at {}", started.url);
    println!("  GPUs      {}", started.gpus);
    println!("  database  {}", started.database);
    println!("  token     {} (found by the command line)", started.token.display());
    println!();
    println!(
        "It schedules the pods that name it (schedulerName: berth). Try, in another terminal:"
    );
    println!("  berth ps                          see what runs and what waits");
    println!("  berth why JOB                     see why it waits, and until when");
    println!("  berth nodes                       see what is free");
}
