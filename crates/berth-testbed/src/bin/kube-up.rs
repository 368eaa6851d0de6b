//! A Kubernetes control plane to try things on, until it is interrupted: `make kube-up`.

use berth_testbed::kube::{ADMIN, Cluster, Kwok};
use std::io;
use tokio::signal::unix::{SignalKind, signal};

const USAGE: &str = "usage: kube-up [--scheduler]";

#[tokio::main(flavor = "current_thread")]
async fn main() -> io::Result<()> {
    let flags: Vec<String> = std::env::args().skip(1).collect();
    let mut options = Cluster::builder().controller_manager().kwok(Kwok::all_nodes());
    match flags.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => {}
        ["--scheduler"] => options = options.scheduler(),
        _ => return Err(io::Error::new(io::ErrorKind::InvalidInput, USAGE)),
    }
    // Before the start: who interrupts that also waits until everything is gone.
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    eprintln!("Starting Kubernetes on loopback; this takes some seconds.");
    let cluster = options.start();
    introduce(&cluster);
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
    eprintln!("Stopping it.");
    drop(cluster);
    Ok(())
}

fn introduce(cluster: &Cluster) {
    let kubectl = cluster.command("kubectl", ADMIN);
    println!("Kubernetes is ready at {}", cluster.url());
    println!();
    for (tool, arguments) in [
        ("kube-apiserver", &["--version"][..]),
        ("etcd", &["--version"]),
        ("kwok", &["--version"]),
        ("helm", &["version", "--short"]),
    ] {
        println!("  {tool:<15} {}", version(cluster, tool, arguments));
    }
    println!();
    println!("Use it from another terminal:");
    println!("  export KUBECONFIG={}", cluster.kubeconfig(ADMIN).display());
    println!("  {} get namespaces", kubectl.get_program().to_string_lossy());
    println!();
    println!("Every Node that you make is simulated by kwok. Logs: {}/logs", {
        cluster.folder().display()
    });
    println!("Ctrl-C stops all of it and deletes its data.");
}

/// The first line that a program says of itself.
fn version(cluster: &Cluster, tool: &str, arguments: &[&str]) -> String {
    let output = cluster.command(tool, ADMIN).args(arguments).output();
    let output = output.map(|output| output.stdout).unwrap_or_default();
    String::from_utf8_lossy(&output).lines().next().unwrap_or("unknown").to_owned()
}
