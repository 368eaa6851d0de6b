//! Snapshots of code. The store of objects keeps each under its digest, and a team has a name for it.

mod adopt;
mod clean;
pub mod kept;
mod tidy;

pub use clean::begin as begin_cleaning;

use crate::blobs::{self, Begun, CODE, Target};
use crate::caller::Caller;
use crate::checks;
use crate::fault::{self, Fault};
use crate::service::Service;
use berth_api::access::Permission;
use berth_api::{Code, wire};
use berth_blobs::Content;
use berth_engine::{Write, clock};
use berth_model::{CodeId, Span};
use berth_store::{Batch, BlobNameRow, Store};
use bytes::Bytes;
use kept::{Kept, KeptError};

/// What one snapshot may take, and all of a team.
pub const MOST_BYTES: u64 = 100_000_000;
const MOST_BYTES_OF_TEAM: u64 = 10_000_000_000;
/// The time of a name is that of the last use, to within this.
const NOTED_EVERY: Span = Span::hours(24);

/// A snapshot that is there.
pub async fn info(
    service: &Service,
    caller: &Caller,
    team: &str,
    id: &str,
) -> Result<wire::CodeSnapshot, Fault> {
    let (team, id) = of(service, caller, Permission::LogsRead, team, id).await?;
    let found = used(service, &team, &id).await?;
    let kept = found.ok_or_else(|| missing(&team, &id))?;
    // A client sends the bytes again if the store has lost them.
    match kept.is_there(&service.blobs.blobs).await.map_err(failed)? {
        true => Ok(wire::CodeSnapshot { id: id.to_string(), team, bytes: kept.bytes }),
        false => Err(missing(&team, &id)),
    }
}

/// A snapshot, packed, and its size.
pub async fn open(
    service: &Service,
    caller: &Caller,
    team: &str,
    id: &str,
) -> Result<(Content, u64), Fault> {
    let (team, id) = of(service, caller, Permission::LogsRead, team, id).await?;
    must_be_its_own(service, caller, &id)?;
    let found = kept::find(&service.store, &service.home, &team, &id).await.map_err(failed)?;
    let kept = found.ok_or_else(|| missing(&team, &id))?;
    match kept.read(&service.blobs.blobs).await {
        Ok(content) => Ok((content, kept.bytes)),
        Err(error) if error.is_missing() => Err(missing(&team, &id)),
        Err(error) => Err(failed(error)),
    }
}

/// A snapshot that is being sent. Berth keeps nothing of it unless it is finished.
pub struct Upload {
    id: CodeId,
    begun: Begun,
    bytes: u64,
}

/// Begins to take a snapshot in.
pub async fn begin(
    service: &Service,
    caller: &Caller,
    team: &str,
    id: &str,
) -> Result<Upload, Fault> {
    let (team, id) = of(service, caller, Permission::JobsSubmit, team, id).await?;
    tidy::tidy(service, &team).await?;
    if service.store.named_sum_of(&team, CODE).await?.bytes >= MOST_BYTES_OF_TEAM {
        let detail = format!(
            "the snapshots of code of team {team} take {} GB, which is all they may",
            MOST_BYTES_OF_TEAM / 1_000_000_000
        );
        let next = "use a volume for data; Berth removes snapshots 30 days after their last use";
        return Err(Fault::new(Code::TooLarge, detail).next(next));
    }
    let target = Target { team, kind: CODE, name: id.to_string(), is_noted: true };
    let begun = blobs::begin_upload(service, target, None).await?;
    Ok(Upload { id, begun, bytes: 0 })
}

impl Upload {
    pub async fn write(self, service: &Service, piece: Bytes) -> Result<Upload, Fault> {
        let Upload { id, begun, bytes } = self;
        let bytes = bytes.saturating_add(piece.len() as u64);
        if bytes > MOST_BYTES {
            let detail = format!("a snapshot of code has at most {} MB", MOST_BYTES / 1_000_000);
            let next = "name large files in .gitignore or .berthignore, and keep data in a volume";
            return Err(Fault::new(Code::TooLarge, detail).next(next));
        }
        Ok(Upload { id, begun: begun.write(service, piece).await?, bytes })
    }

    /// Keeps it, if it is what its name says.
    pub async fn finish(
        self,
        service: &Service,
        caller: &Caller,
    ) -> Result<wire::CodeSnapshot, Fault> {
        let (target, whole) = self.begun.finish().await?;
        if whole.id.as_str() != self.id.digits() {
            let detail = format!("what was sent is sha256:{}, not {}", whole.id, self.id);
            return Err(Fault::new(Code::BadRequest, detail).next("send it again"));
        }
        let team = target.team.clone();
        let placed = blobs::keep(service, caller, target, whole).await?;
        Ok(wire::CodeSnapshot { id: self.id.to_string(), team, bytes: placed.bytes })
    }
}

/// Refuses a job whose snapshot is not there, and notes that this one is used.
pub async fn must_be_there(service: &Service, team: &str, id: &CodeId) -> Result<(), Fault> {
    let found = used(service, team, id).await?;
    found.map(drop).ok_or_else(|| missing(team, id))
}

/// Finds a snapshot and notes that it is used: Berth then keeps it for its whole time.
async fn used(service: &Service, team: &str, id: &CodeId) -> Result<Option<Kept>, Fault> {
    // What removes old names waits meanwhile.
    let _placing = service.blobs.placing.read().await;
    let name = id.to_string();
    let row = service.store.get::<BlobNameRow>((team, CODE, &name)).await?;
    let now = clock::now();
    match row {
        Some(row) if now - row.created > NOTED_EVERY => {
            let mut documents = Batch::default();
            documents.touch(&BlobNameRow { created: now, ..row });
            let of = team.to_owned();
            let check =
                move |store: Store| async move { checks::team(&store, &of).await.map(drop) };
            let write = Write::unnoted(documents);
            let write = write.only_if(move |store| checks::all(check(store)));
            service.engine.write(write).await?;
        }
        Some(_) => {}
        None => kept::note_use(&service.home, team, id).await.map_err(failed)?,
    }
    kept::find(&service.store, &service.home, team, id).await.map_err(failed)
}

/// A token that only fetches the code of a job is good for no other snapshot of its team.
fn must_be_its_own(service: &Service, caller: &Caller, id: &CodeId) -> Result<(), Fault> {
    let Some(number) = caller.fetches_of() else { return Ok(()) };
    let core = service.engine.core();
    let job = core.jobs.get(&number);
    let own = job.and_then(|job| job.detail.workload.run()?.code.as_ref());
    if own == Some(id) {
        return Ok(());
    }
    let detail = format!("this token of job {number} fetches the job's code and no other");
    Err(Fault::new(Code::ScopeTooSmall, detail))
}

fn missing(team: &str, id: &CodeId) -> Fault {
    let detail = format!("team {team} has no snapshot of code {id}");
    Fault::new(Code::NotFound, detail)
        .next("submit from the folder again, with `berth run --code FOLDER`")
}

fn failed(error: KeptError) -> Fault {
    match error {
        KeptError::Store(error) => error.into(),
        KeptError::Blobs(error) => blobs::failed(error),
        KeptError::Io { .. } => fault::hidden(Code::Internal, &error),
    }
}

async fn of(
    service: &Service,
    caller: &Caller,
    permission: Permission,
    team: &str,
    id: &str,
) -> Result<(String, CodeId), Fault> {
    checks::team(&service.store, team).await?;
    caller.must(permission, Some(team), Some(caller.user()))?;
    let id = id.parse().map_err(|error| Fault::new(Code::BadRequest, format!("{error}")))?;
    Ok((team.to_owned(), id))
}
