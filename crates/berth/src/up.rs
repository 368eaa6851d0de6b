//! `berth up`: the server on this machine.

use crate::fail::{Exit, Failure, Result};
use clap::Args;
use std::path::PathBuf;

#[derive(Args, Debug)]
pub struct Up {
    /// Where the server keeps its database, logs and keys (~/.berth)
    #[arg(long, value_name = "DIR", env = "BERTH_HOME")]
    pub home: Option<PathBuf>,
    /// The address to listen on; any but loopback needs TLS
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:7117", env = "BERTH_LISTEN")]
    pub listen: String,
    /// The certificate of the server, as PEM
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,
    /// The key of the certificate, as PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
    /// PostgreSQL instead of the database in the home: postgres://…
    #[arg(long, value_name = "URL", env = "BERTH_DATABASE", hide_env_values = true)]
    pub database: Option<String>,
    /// Declare GPUs instead of using those there are, such as 8xH100
    #[arg(long, value_name = "DECL")]
    pub gpus: Option<String>,
    /// What this machine is called (its host name)
    #[arg(long, value_name = "NODE")]
    pub name: Option<String>,
    /// Prices by GPU model, as YAML
    #[arg(long, value_name = "FILE")]
    pub prices: Option<PathBuf>,
    /// How the server logs
    #[arg(long, value_enum, default_value = "text")]
    pub log_format: LogFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum LogFormat {
    Text,
    Json,
}

pub fn run(up: Up) -> Result<()> {
    let _ = up;
    Err(Failure::new(Exit::Failed, "the server is not built yet"))
}
