//! `berth reserve`: what runs inside a pod that holds a GPU for those that share it.

use crate::fail::{Exit, Failure, Result};
use crate::up;
use clap::Args;
use std::path::PathBuf;

#[derive(Args, Debug)]
pub struct Reserve {
    /// The kubeconfig of the cluster (the cluster this runs in)
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
}

/// Says which GPU it is and then holds it until it is asked to end.
pub fn run(args: &Reserve) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::io("starting", &error))?;
    let held = runtime.block_on(async {
        let env = |key: &str| std::env::var(key).ok();
        tokio::select! {
            held = berth_server::hold_gpu(args.kubeconfig.as_deref(), &env) => {
                let uuid = held?;
                println!("{uuid}");
                up::asked_to_stop().await;
                Ok(())
            }
            () = up::asked_to_stop() => Ok(()),
        }
    });
    held.map_err(|error: berth_server::HoldError| Failure::new(Exit::Failed, up::chain(&error)))
}
