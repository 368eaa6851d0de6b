//! Volumes of one machine: folders of the machine, or folders that Berth keeps for a team by name.

use super::paths::{PathError, Rights, check_place, normal};
use crate::data::folder_of;
use crate::volumes::{self, Volumes};
use berth_model::DataRef;
use berth_node::Shown;
use berth_service::Home;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

#[derive(Debug, thiserror::Error)]
pub enum VolumeError {
    #[error("the volume {0} is not on this machine")]
    Missing(String),
    #[error("the folder {0} is not on this machine; make it, or name another folder or a volume")]
    NoFolder(String),
    #[error("{0}")]
    Kept(#[from] volumes::Error),
    #[error("{0}")]
    Path(#[from] PathError),
    #[error(
        "cannot put the volume {volume} at {}: jobs are not isolated here, and a link at that place \
         would be there for everybody; start the server with isolation, or name a place in the \
         job's own folder {}",
        at.display(),
        own.display()
    )]
    NeedsIsolation { volume: String, at: PathBuf, own: PathBuf },
    #[error("cannot put the volume {volume} at {}: {error}", at.display())]
    Link { volume: String, at: PathBuf, error: io::Error },
}

/// One volume of a job: what it is, and where it appears.
pub struct Volume<'a> {
    pub source: &'a str,
    pub at: &'a str,
    /// What `at` is relative to.
    pub directory: &'a Path,
    pub own: &'a Path,
    pub team: &'a str,
}

impl Volume<'_> {
    pub fn place(&self, home: &Home) -> Result<PathBuf, VolumeError> {
        let place = self.directory.join(normal(self.at)?);
        check_place(&place, home.root(), self.own)?;
        Ok(place)
    }

    /// The folder of a version of data, where it is one.
    fn data(&self, home: &Home) -> Option<PathBuf> {
        folder_of(home, self.team, &self.source.parse::<DataRef>().ok()?)
    }

    /// Whether the job may ever have it, as far as that can be told before it starts. Jobs before this one
    /// may make its folder.
    pub fn check(
        &self,
        home: &Home,
        rights: Option<&Rights<'_>>,
        is_made_later: bool,
    ) -> Result<(), VolumeError> {
        self.place(home)?;
        if !self.source.starts_with('/') {
            return Ok(());
        }
        let source = Path::new(self.source);
        let is_missing = match rights.map(|rights| rights.show(source)) {
            Some(Err(error @ PathError::NotShared(_))) => return Err(error.into()),
            // It may be open when the job starts.
            Some(shown) => shown.is_err_and(|why| why.is_missing()),
            None => fs::metadata(source).is_err_and(|why| why.kind() == io::ErrorKind::NotFound),
        };
        match is_missing && !is_made_later {
            true => Err(VolumeError::NoFolder(self.source.to_owned())),
            false => Ok(()),
        }
    }

    /// As a mount in the view of the job.
    pub fn mount(
        &self,
        home: &Home,
        kept: &Volumes,
        rights: &Rights<'_>,
    ) -> Result<Option<Shown>, VolumeError> {
        let at = self.place(home)?;
        if let Some(source) = self.data(home) {
            return Ok(Some(Shown { at, source, write: false, by: None }));
        }
        if !self.source.starts_with('/') {
            let source = kept.keep(self.team, self.source, true)?;
            return Ok(Some(Shown { at, source, write: true, by: None }));
        }
        let named = Path::new(self.source);
        let shown = match rights.show(named) {
            Err(why) if why.is_missing() => {
                return Err(VolumeError::Missing(self.source.to_owned()));
            }
            shown => shown?,
        };
        let Some(shown) = shown else {
            // A folder of the system is read-only wherever it appears.
            let by = Some(rights.opener_of_system());
            let fail = |error| PathError::Io { path: named.to_owned(), error };
            let source = named.canonicalize().map_err(fail)?;
            return Ok(Some(Shown { at, source, write: false, by }));
        };
        Ok(Some(Shown { at, ..shown }))
    }

    /// As a link, for jobs that see the machine as it is.
    pub fn link(&self, home: &Home, kept: &Volumes) -> Result<(), VolumeError> {
        let at = self.place(home)?;
        let target = match self.data(home) {
            Some(folder) => folder,
            None if self.source.starts_with('/') => PathBuf::from(self.source),
            None => kept.keep(self.team, self.source, false)?,
        };
        let volume = self.source.to_owned();
        if !target.exists() {
            return Err(VolumeError::Missing(volume));
        }
        if at == target || fs::read_link(&at).is_ok_and(|link| link == target) {
            return Ok(());
        }
        if !at.starts_with(self.own) {
            let own = self.own.to_owned();
            return Err(VolumeError::NeedsIsolation { volume, at, own });
        }
        let linked = fs::create_dir_all(at.parent().unwrap_or(self.own))
            .and_then(|()| std::os::unix::fs::symlink(&target, &at));
        linked.map_err(|error| VolumeError::Link { volume, at, error })
    }
}
