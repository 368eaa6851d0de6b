//! Large artifacts, in parts that are sent at the same time. The parts wait on the server's disk until
//! they are put together. They are lost with a restart of the server.

use super::{ArtifactPath, begin, finish, must_see};
use crate::blob_book::Multipart;
use crate::blobs;
use crate::caller::Caller;
use crate::fault::Fault;
use crate::service::Service;
use crate::token;
use berth_api::Code;
use berth_api::access::Permission;
use berth_blobs::{Placed, Upload, Whole};
use berth_engine::clock;
use berth_model::Span;
use bytes::Bytes;
use ring::digest::{SHA256, digest};
use std::fs::File;
use std::io::Read;

/// Parts of one artifact, as in S3.
const MOST_PARTS: u32 = 10_000;
/// Uploads of a team at once.
const MOST_OF_TEAM: usize = 64;
/// An upload that is not completed is given up.
const LASTS: Span = Span::hours(24);
/// Bytes that are read at a time where parts are put together.
const PIECE: usize = 1 << 20;

/// How the parts are to be sent.
#[derive(Debug, Clone)]
pub struct Parts {
    pub id: String,
    /// The requests for parts say it.
    pub secret: String,
    pub count: u32,
}

/// Begins an artifact that comes in parts.
pub async fn create(
    service: &Service,
    caller: &Caller,
    path: &ArtifactPath,
    count: u32,
) -> Result<Parts, Fault> {
    if count == 0 || count > MOST_PARTS {
        let detail = format!("an artifact comes in 1 to {MOST_PARTS} parts, not {count}");
        return Err(Fault::new(Code::BadRequest, detail));
    }
    // Looks at rights, at the place and at the room, and leaves nothing.
    drop(begin(service, caller, path, None).await?);
    let parts = Parts { id: token::random::<16>(), secret: token::random::<24>(), count };
    let upload = Multipart {
        team: path.team.clone(),
        name: path.name.clone(),
        by: caller.user().to_owned(),
        begun: clock::now(),
        secret_hash: hash(&parts.secret),
        count,
        parts: Default::default(),
    };
    let mut all = service.blobs.multipart_now();
    all.retain(|_, upload| upload.begun + LASTS > clock::now());
    if all.values().filter(|upload| upload.team == path.team).count() >= MOST_OF_TEAM {
        let detail = format!("team {} has {MOST_OF_TEAM} uploads in parts already", path.team);
        return Err(Fault::new(Code::TooMany, detail).next("complete or abort some of them"));
    }
    all.insert(parts.id.clone(), upload);
    Ok(parts)
}

fn hash(secret: &str) -> String {
    hex::encode(digest(&SHA256, secret.as_bytes()))
}

fn unknown(id: &str) -> Fault {
    Fault::not_found("upload", &id.chars().take(64).collect::<String>())
        .next("begin the upload anew: a restart of the server ends it, and so does a day")
}

/// Begins to take a part in, for a client that knows the secret of the upload.
pub async fn may_send_part(
    service: &Service,
    id: &str,
    secret: &str,
    number: u32,
    said: Option<u64>,
) -> Result<Upload, Fault> {
    let team = {
        let all = service.blobs.multipart_now();
        let upload = all.get(id).filter(|upload| upload.secret_hash == hash(secret));
        let upload = upload.ok_or_else(|| unknown(id))?;
        if number == 0 || number > upload.count {
            let detail = format!("the upload has parts 1 to {}, not {number}", upload.count);
            return Err(Fault::new(Code::BadRequest, detail));
        }
        upload.team.clone()
    };
    service.host.must_have_room()?;
    let left = blobs::room_of(service, &team).await?;
    service.blobs.blobs.begin(said, left).await.map_err(blobs::failed)
}

/// Takes a piece of a part in.
pub async fn write_part(upload: Upload, piece: Bytes) -> Result<Upload, Fault> {
    upload.write(piece).await.map_err(blobs::failed)
}

/// Keeps a part, and gives what stands for it: its MD5 sum, as S3 does.
pub async fn keep_part(
    service: &Service,
    id: &str,
    number: u32,
    upload: Upload,
) -> Result<String, Fault> {
    let whole = upload.finish().await.map_err(blobs::failed)?;
    let tag = whole.md5.clone();
    let mut all = service.blobs.multipart_now();
    all.get_mut(id).ok_or_else(|| unknown(id))?.parts.insert(number, whole);
    Ok(tag)
}

/// Puts the parts together.
pub async fn complete(
    service: &Service,
    caller: &Caller,
    path: &ArtifactPath,
    id: &str,
    parts: &[(u32, String)],
) -> Result<Placed, Fault> {
    let begun = begin(service, caller, path, None).await?;
    let wholes = taken(service, caller, path, id, Some(parts))?;
    let mut begun = begun;
    for whole in wholes {
        let mut file = Some(opened(&whole)?);
        while let Some(open) = file.take() {
            let (rest, piece) = next_piece(open).await?;
            if !piece.is_empty() {
                begun = begun.write(service, piece).await?;
                file = Some(rest);
            }
        }
    }
    finish(service, caller, begun).await
}

/// Gives the parts up.
pub async fn abort(
    service: &Service,
    caller: &Caller,
    path: &ArtifactPath,
    id: &str,
) -> Result<(), Fault> {
    let shown = path.to_string();
    let permission = Permission::ArtifactsWrite;
    must_see(service, caller, permission, &path.team, ("artifact", &shown)).await?;
    taken(service, caller, path, id, None).map(drop)
}

/// The parts of an upload in their order, which is over with that.
fn taken(
    service: &Service,
    caller: &Caller,
    path: &ArtifactPath,
    id: &str,
    wanted: Option<&[(u32, String)]>,
) -> Result<Vec<Whole>, Fault> {
    let mut all = service.blobs.multipart_now();
    let is_it = |upload: &&Multipart| {
        upload.team == path.team && upload.name == path.name && upload.by == caller.user()
    };
    let upload = all.get(id).filter(is_it).ok_or_else(|| unknown(id))?;
    if let Some(wanted) = wanted {
        let has = |(number, tag): &(u32, String)| {
            upload.parts.get(number).is_some_and(|part| part.md5 == tag.trim_matches('"'))
        };
        let numbers = wanted.iter().map(|(number, _)| *number);
        let in_order = numbers.eq(1..=upload.count);
        if !in_order || !wanted.iter().all(has) {
            let detail = format!(
                "the upload has {} of {} parts, and not those that were named",
                upload.parts.len(),
                upload.count
            );
            let next = "send the parts that are missing, and name all in their order";
            return Err(Fault::new(Code::BadRequest, detail).next(next));
        }
    }
    let upload = all.remove(id);
    Ok(upload.map(|upload| upload.parts.into_values().collect()).unwrap_or_default())
}

fn opened(whole: &Whole) -> Result<File, Fault> {
    whole.open().map_err(blobs::failed)
}

async fn next_piece(mut file: File) -> Result<(File, Bytes), Fault> {
    let read = tokio::task::spawn_blocking(move || {
        let mut piece = Vec::with_capacity(PIECE);
        (&mut file).take(PIECE as u64).read_to_end(&mut piece)?;
        Ok::<_, std::io::Error>((file, Bytes::from(piece)))
    });
    let read = read.await.map_err(|_| Fault::new(Code::Internal, "the disk was not asked"))?;
    read.map_err(|error| crate::fault::hidden(Code::Internal, &error))
}
