//! Asking the host about the named volumes that it keeps on its disk.

use crate::fault::{self, Fault};
use crate::host::TeamVolumes;
use crate::service::Service;
use berth_api::Code;
use std::io;

/// Names of the volumes that a team has.
pub(crate) async fn names_of(service: &Service, team: &str) -> Result<Vec<String>, Fault> {
    let of = team.to_owned();
    let found = on_disk(service, move |volumes| volumes.of_team(&of)).await?;
    Ok(found.map_err(failed)?.into_iter().map(|volume| volume.name).collect())
}

/// Asks the disk, where that keeps nobody else waiting.
pub(crate) async fn on_disk<T: Send + 'static>(
    service: &Service,
    ask: impl FnOnce(&dyn TeamVolumes) -> T + Send + 'static,
) -> Result<T, Fault> {
    if service.host.volumes().is_none() {
        let detail = "named volumes are PersistentVolumeClaims here, and Berth does not keep them";
        let next = "look after them with `kubectl get pvc` in the namespace of the team";
        return Err(Fault::new(Code::NotHere, detail).next(next));
    }
    let host = service.host.clone();
    let asked = tokio::task::spawn_blocking(move || host.volumes().map(ask)).await;
    asked.ok().flatten().ok_or_else(|| Fault::new(Code::Internal, "the disk was not asked"))
}

/// Why is in the server's log: it names the server's own files.
pub(crate) fn failed(error: io::Error) -> Fault {
    match error.kind() {
        io::ErrorKind::ResourceBusy | io::ErrorKind::CrossesDevices => {
            let detail = "something is mounted in the place of the volume";
            Fault::new(Code::InUse, detail).next("have an admin of the machine unmount it first")
        }
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            Fault::no_room("the disk is full")
        }
        _ => fault::hidden(Code::Internal, &error),
    }
}
