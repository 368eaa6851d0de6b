//! `berth restore`: a backup becomes a database again.

use crate::fail::{Exit, Failure, Result};
use crate::show::note;
use crate::up;
use clap::Args;
use std::path::PathBuf;

#[derive(Args, Debug)]
pub struct Restore {
    /// The backup to read
    #[arg(value_name = "FILE")]
    backup: PathBuf,
    /// The folder of the server, without a database or with an empty one (~/.berth)
    #[arg(long, value_name = "DIR", env = "BERTH_HOME")]
    home: Option<PathBuf>,
    /// An empty PostgreSQL database instead of the one in the home: postgres://…
    #[arg(long, value_name = "URL", env = "BERTH_DATABASE", hide_env_values = true)]
    database: Option<String>,
    /// The key that signs the audit log (a file in the home)
    #[arg(long, value_name = "FILE", env = "BERTH_AUDIT_KEY")]
    audit_key: Option<PathBuf>,
    /// Restore even if the key of the audit log is lost; old rows can no longer be verified
    #[arg(long)]
    without_audit_key: bool,
}

pub fn run(args: &Restore) -> Result<()> {
    let home = up::home(args.home.as_deref())?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::io("starting", &error))?;
    let who = up::user_name();
    let read = berth_server::restore(berth_server::Restore {
        home: &home,
        database: args.database.as_deref(),
        audit_key: args.audit_key.as_deref(),
        backup: &args.backup,
        who: &who,
        without_audit_key: args.without_audit_key,
    });
    let restored =
        runtime.block_on(read).map_err(|error| Failure::new(Exit::Failed, up::chain(&error)))?;
    note(&format!("Read {} rows into {}.", restored.rows, restored.database));
    match restored.tracked {
        berth_server::Tracked::NotInBackup => note("The backup has no experiments and runs."),
        berth_server::Tracked::Rows(rows) => {
            note(&format!("{rows} more rows are its experiments, runs and models."));
        }
        berth_server::Tracked::Kept(database) => note(&format!(
            "Kept the experiments, runs and models that were in {database}; those of the backup were not \
             read. To have those of the backup, restore into an empty home."
        )),
    }
    if let Some(key) = restored.missing_key {
        note(&format!(
            "The backup has no key for its secrets: put the key at {} before the next start, or set the \
             secrets again.",
            key.display()
        ));
    }
    if let Some(why) = restored.unverified {
        note(&format!(
            "Its audit log does not verify: {why}. `berth audit verify` says more once the server \
             runs."
        ));
    }
    if restored.running > 0 {
        let (tasks, run) = if restored.running == 1 { ("task", "runs") } else { ("tasks", "run") };
        note(&format!(
            "{} {tasks} still {run} here. The next start goes on with what the backup knows of, \
             and ends the rest.",
            restored.running
        ));
    }
    if restored.signed_out > 0 {
        let browsers = if restored.signed_out == 1 { "browser" } else { "browsers" };
        note(&format!(
            "Signed out {} {browsers} of the backup. Tokens that were revoked since the backup are good \
             again: check `berth token list`.",
            restored.signed_out
        ));
    }
    note("Start the server with `berth up`.");
    Ok(())
}
