//! `berth fetch-code`: what runs in a pod before the command of its job, and gets the code and the data
//! of the job.

use crate::context::Context;
use crate::data_get;
use crate::fail::{BERTH_FAILED, Exit, Failure, Result};
use crate::node_cache::NodeCache;
use crate::settings::Flags;
use crate::{show, up};
use berth_api::client::{self, Client};
use berth_code::{Hasher, MOST_PACKED, unpack};
use berth_model::{CodeId, DataRef, Span};
use clap::Args;
use serde_json::json;
use std::fs::{self, File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::{Duration, Instant, SystemTime};

/// Between tries; it doubles up to the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(15);
/// What the server knows the report of the node's data by.
const REPORT: &str = "berth-data: ";
/// What a program ends with that SIGTERM has ended.
const TERMINATED: u8 = 143;

#[derive(Args, Debug)]
pub struct FetchCode {
    /// The team whose job it is
    #[arg(value_name = "TEAM")]
    team: String,
    /// The snapshot of the job's code, such as sha256:2d71…
    #[arg(value_name = "SNAPSHOT", requires = "folder")]
    code: Option<CodeId>,
    /// The folder to make
    #[arg(value_name = "FOLDER")]
    folder: Option<PathBuf>,
    /// A version of data with its hash, and the folder to make. Can be given several times
    #[arg(long, value_name = "VERSION#HASH=FOLDER")]
    data: Vec<Wanted>,
    #[command(flatten)]
    cache: CacheFlags,
    /// How long to try again while the server does not answer
    #[arg(long, value_name = "TIME", default_value = "10m")]
    patience: Span,
}

/// The folder of the node in which pods share their data.
#[derive(Args, Debug)]
struct CacheFlags {
    /// A folder of the node that keeps data for other pods; the folders of --data are in it
    #[arg(long, value_name = "FOLDER", requires = "cache_size", requires = "cache_since")]
    cache: Option<PathBuf>,
    /// How many bytes of data it keeps
    #[arg(long, value_name = "BYTES")]
    cache_size: Option<u64>,
    /// When the pod was made, in milliseconds
    #[arg(long, value_name = "TIME")]
    cache_since: Option<u64>,
    /// The file that the node shows in the status of the pod
    #[arg(long, value_name = "FILE", default_value = "/dev/termination-log")]
    last_words: PathBuf,
    /// Data that other tasks on the node have. Can be given several times
    #[arg(long, value_name = "TEAM/DATA")]
    in_use: Vec<PathBuf>,
}

impl CacheFlags {
    fn open(&self) -> Result<Option<NodeCache>, Trouble> {
        let Some(root) = &self.cache else { return Ok(None) };
        let since = Duration::from_millis(self.cache_since.unwrap_or(0));
        let since = SystemTime::UNIX_EPOCH + since;
        let most = self.cache_size.unwrap_or(0);
        let opened = NodeCache::open(root.clone(), most, self.in_use.iter().cloned(), since);
        opened.map(Some).map_err(failed("open", root))
    }
}

/// A version of data, and where it is wanted.
#[derive(Debug, Clone)]
struct Wanted {
    data: DataRef,
    folder: PathBuf,
}

impl FromStr for Wanted {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Wanted, String> {
        let (data, folder) = text.split_once('=').ok_or("it has no `=FOLDER`")?;
        let data: DataRef = data.parse().map_err(|error| format!("{error}"))?;
        if data.hash.is_none() {
            return Err("it has no `#HASH`".to_owned());
        }
        Ok(Wanted { data, folder: PathBuf::from(folder) })
    }
}

/// Why the code is not here.
struct Trouble {
    /// A moment later it may be.
    passes: bool,
    failure: Failure,
}

impl From<client::Error> for Trouble {
    fn from(error: client::Error) -> Trouble {
        Trouble { passes: error.passes(), failure: error.into() }
    }
}

impl Trouble {
    fn lasting(why: String) -> Trouble {
        Trouble { passes: false, failure: Failure::new(Exit::Failed, why) }
    }
}

/// What a step of it failed with.
fn failed(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Trouble {
    let path = path.display().to_string();
    move |error| Trouble::lasting(format!("cannot {doing} {path}: {error}"))
}

/// Fetches it, or says on one line why that failed: the node reports the last line of the log.
pub fn run(flags: &Flags, args: &FetchCode) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::io("starting", &error));
    let fetched = runtime.and_then(|runtime| {
        let context = Context::new(flags)?;
        let client = context.client()?;
        runtime.block_on(async {
            tokio::select! {
                fetched = fetch(client, args) => fetched,
                // The first process of a container ends by no signal that it does not look for.
                () = up::asked_to_stop() => Err(Failure::of_job(TERMINATED)),
            }
        })
    });
    fetched.map_err(|failure| {
        if failure.status() == TERMINATED {
            return failure;
        }
        let what = if args.code.is_some() { "code" } else { "data" };
        show::note(&format!("cannot fetch the {what}: {}", one_line(&failure)));
        Failure::of_job(BERTH_FAILED)
    })
}

fn one_line(failure: &Failure) -> String {
    let (detail, next) = failure.parts();
    let all = [Some(detail), next].into_iter().flatten().collect::<Vec<_>>().join("; ");
    all.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Tries until it is here, something lasting is wrong, or the patience is used up.
async fn fetch(client: &Client, args: &FetchCode) -> Result<()> {
    let begun = Instant::now();
    let patience = Duration::from_millis(u64::try_from(args.patience.0).unwrap_or(0));
    let (mut pause, mut said) = (FIRST_PAUSE, String::new());
    loop {
        let failure = match try_all(client, args).await {
            Ok(()) => return Ok(()),
            Err(Trouble { passes: false, failure }) => return Err(failure),
            Err(Trouble { failure, .. }) => failure,
        };
        let (why, _) = failure.parts();
        if begun.elapsed() + pause > patience {
            let seconds = begun.elapsed().as_secs();
            return Err(Failure::new(failure.exit, format!("{why}; tried for {seconds} s")));
        }
        if why != said {
            show::note(&format!("not yet, trying again: {why}"));
            said = why;
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// What is here already is not fetched again.
async fn try_all(client: &Client, args: &FetchCode) -> Result<(), Trouble> {
    if let (Some(code), Some(folder)) = (&args.code, &args.folder) {
        try_once(client, &args.team, code, folder).await?;
    }
    let cache = args.cache.open()?;
    for wanted in &args.data {
        match &cache {
            None if wanted.folder.symlink_metadata().is_ok() => {}
            None => get_data(client, &args.team, wanted, &wanted.folder).await?,
            Some(cache) => get_cached(client, &args.team, wanted, cache).await?,
        }
    }
    // The report helps the scheduler, and the job can do without.
    if let Some(report) = cache.as_ref().and_then(|cache| cache.report().ok()) {
        let _ = fs::write(&args.cache.last_words, format!("{REPORT}{}", json!(report)));
    }
    Ok(())
}

async fn get_data(client: &Client, team: &str, wanted: &Wanted, to: &Path) -> Result<(), Trouble> {
    let Wanted { data, .. } = wanted;
    let hash = data.hash.as_ref().map(ToString::to_string).unwrap_or_default();
    let from = data_get::Source { team, hash: &hash, name: &data.version.name };
    // Whatever went wrong on the way may go well later; a refusal lasts.
    data_get::get(client, from, to).await.map_err(|failure| Trouble {
        passes: !matches!(failure.exit, Exit::NotFound | Exit::Refused | Exit::Usage),
        failure,
    })
}

async fn get_cached(
    client: &Client,
    team: &str,
    wanted: &Wanted,
    cache: &NodeCache,
) -> Result<(), Trouble> {
    let folder = &wanted.folder;
    if cache.find(folder).map_err(failed("look for", folder))? {
        return Ok(());
    }
    let draft = cache.draft().map_err(failed("begin", folder))?;
    get_data(client, team, wanted, &draft.tree()).await?;
    cache.keep(&draft, folder).map_err(failed("keep", folder))
}

/// The folder appears when it is whole, so that a node may run this again at any moment.
async fn try_once(
    client: &Client,
    team: &str,
    code: &CodeId,
    folder: &Path,
) -> Result<(), Trouble> {
    if folder.symlink_metadata().is_ok() {
        return Ok(());
    }
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    let packed = folder.with_file_name(format!(".{name}.tar.gz"));
    let draft = folder.with_file_name(format!(".{name}.new"));
    remove(&draft)?;
    receive(client, (team, code), &packed).await?;
    fs::create_dir(&draft).map_err(failed("make", &draft))?;
    let archive = File::open(&packed).map_err(failed("read", &packed))?;
    unpack(archive, &draft).map_err(|error| {
        Trouble::lasting(format!("the snapshot {code} cannot be unpacked: {error}"))
    })?;
    fs::remove_file(&packed).map_err(failed("remove", &packed))?;
    open_to_all(&draft).map_err(failed("open", &draft))?;
    fs::rename(&draft, folder).map_err(failed("make", folder))
}

fn remove(folder: &Path) -> Result<(), Trouble> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(failed("remove", folder)(error))
        }
        _ => Ok(()),
    }
}

/// Writes the snapshot to a file, and checks that it is what its name says.
async fn receive(client: &Client, (team, code): (&str, &CodeId), to: &Path) -> Result<(), Trouble> {
    let file = File::create(to).map_err(failed("write", to))?;
    let mut hasher = Hasher::new(file);
    let mut pieces = client.code_content(team, &code.to_string()).await?;
    while let Some(piece) = pieces.next().await? {
        hasher.write_all(&piece).map_err(failed("write", to))?;
        if hasher.bytes() > MOST_PACKED {
            let most = MOST_PACKED / 1_000_000;
            let why = format!("the server sent more than {most} MB, which no snapshot has");
            return Err(Trouble::lasting(why));
        }
    }
    let (_, found, _) = hasher.finish();
    if found == *code {
        return Ok(());
    }
    Err(Trouble::lasting(format!("the server sent {found} instead of {code}")))
}

/// Lets the command of the job write to its code, whatever account its image has. No other pod sees
/// the folder. Links stay as they are, and what they lead to is not looked at.
fn open_to_all(path: &Path) -> io::Result<()> {
    let found = path.symlink_metadata()?;
    if found.is_symlink() {
        return Ok(());
    }
    let runs = found.is_dir() || found.permissions().mode() & 0o100 != 0;
    fs::set_permissions(path, Permissions::from_mode(if runs { 0o777 } else { 0o666 }))?;
    if found.is_dir() {
        for entry in fs::read_dir(path)? {
            open_to_all(&entry?.path())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn any_account_may_write_to_the_code_and_links_lead_to_nothing_that_changes() {
        let folder = tempfile::tempdir().unwrap();
        let (code, outside) = (folder.path().join("code"), folder.path().join("outside"));
        fs::create_dir_all(code.join("src")).unwrap();
        for (file, mode) in [(code.join("run.sh"), 0o755), (code.join("src/a"), 0o644)] {
            fs::write(&file, "").unwrap();
            fs::set_permissions(&file, Permissions::from_mode(mode)).unwrap();
        }
        fs::write(&outside, "").unwrap();
        fs::set_permissions(&outside, Permissions::from_mode(0o600)).unwrap();
        symlink("../outside", code.join("link")).unwrap();
        open_to_all(&code).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o7777;
        let modes = [code.join("run.sh"), code.join("src/a"), code.join("src"), outside];
        assert_eq!(modes.map(|path| mode(&path)), [0o777, 0o666, 0o777, 0o600]);
    }
}
