//! Reading a file store.

use super::layout::{META, MODELS, NO_RUNS, TRASH, file_of, folders, name_of, some_folders};
use super::{FileStore, disk, lines, models, registry, runs};
use crate::error::Result;
use crate::model::{
    Content, Experiment, FileInfo, LoggedModel, Place, Point, RegisteredModel, Run, Version,
};
use crate::report::Problem;
use crate::source::{Fut, Pages, Source};
use futures_util::{StreamExt, stream};
use std::path::{Path, PathBuf};

/// The number of runs or models in one page.
const PAGE: usize = 50;

impl FileStore {
    fn tell(&self, problems: Vec<Problem>) {
        for problem in problems {
            self.problems.add(problem.what, problem.why);
        }
    }

    fn read_experiments(&self) -> Result<Vec<Experiment>> {
        let mut all = Vec::new();
        for (inside, is_trash) in [(self.root.clone(), false), (self.root.join(TRASH), true)] {
            for folder in some_folders(&inside)? {
                if !is_trash && name_of(&folder) == MODELS {
                    continue;
                }
                // Skip other folders of the user.
                let shown = || format!("experiment in {}", folder.display());
                if !folder.join(META).is_file() {
                    if is_trash || folders(&folder)?.iter().any(|run| run.join(META).is_file()) {
                        self.problems.add(shown(), "it has no meta.yaml");
                    }
                    continue;
                }
                match runs::experiment(&folder, is_trash) {
                    Ok((read, problems)) => {
                        self.tell(problems);
                        all.push(read);
                    }
                    Err(error) => self.problems.add(shown(), error.whole()),
                }
            }
        }
        Ok(all)
    }

    /// Reads folders page by page, and reports unreadable ones as problems.
    fn pages<'a, T: Send + 'static>(
        &'a self,
        found: Result<Vec<PathBuf>>,
        what: &'static str,
        read: impl Fn(&Path) -> Result<runs::Read<T>> + Clone + Send + 'static,
    ) -> Pages<'a, T> {
        let folders = match found {
            Ok(folders) => folders,
            Err(error) => return stream::iter([Err(error)]).boxed_local(),
        };
        let pages: Vec<Vec<PathBuf>> = folders.chunks(PAGE).map(<[_]>::to_vec).collect();
        stream::iter(pages)
            .then(move |page| {
                let read = read.clone();
                async move {
                    let work = move || {
                        let all = page.iter().map(|folder| (name_of(folder), read(folder)));
                        Ok(all.collect::<Vec<_>>())
                    };
                    let mut items = Vec::new();
                    for (name, read) in disk::blocking(work).await? {
                        match read {
                            Ok((item, problems)) => {
                                self.tell(problems);
                                items.push(item);
                            }
                            Err(error) => {
                                self.problems.add(format!("{what} {name}"), error.whole())
                            }
                        }
                    }
                    Ok(items)
                }
            })
            .boxed_local()
    }

    fn run_folder(&self, run: &Run) -> PathBuf {
        let active = self.root.join(&run.experiment).join(&run.id);
        match active.is_dir() {
            true => active,
            false => self.root.join(TRASH).join(&run.experiment).join(&run.id),
        }
    }
}

impl Source for FileStore {
    fn name(&self) -> &str {
        &self.name
    }

    fn experiments(&self) -> Fut<'_, Vec<Experiment>> {
        Box::pin(async { self.read_experiments() })
    }

    fn runs<'a>(&'a self, of: &'a Experiment) -> Pages<'a, Run> {
        let experiment = PathBuf::from(&of.location);
        let found = folders(&experiment).map(|all| {
            let is_run = |folder: &PathBuf| !NO_RUNS.contains(&name_of(folder).as_str());
            all.into_iter().filter(is_run).collect()
        });
        self.pages(found, "run", move |folder| runs::run(folder, &experiment))
    }

    fn points<'a>(&'a self, run: &'a Run, key: &'a str) -> Pages<'a, Point> {
        let path = file_of(&self.run_folder(run).join(super::layout::METRICS), key);
        let opened = path.and_then(|path| lines::Points::open(&path));
        let opened = match opened {
            Ok(opened) => opened,
            Err(error) => return stream::iter([Err(error)]).boxed_local(),
        };
        stream::try_unfold(opened, move |mut points| async move {
            let (points, page) = disk::blocking(move || {
                let page = points.page()?;
                Ok((points, page))
            })
            .await?;
            let Some((page, bad)) = page else { return Ok(None) };
            for (line, why) in bad {
                self.problems.add(format!("metric {key} of run {}, line {line}", run.id), why);
            }
            Ok(Some((page, points)))
        })
        .boxed_local()
    }

    fn logged_models<'a>(&'a self, of: &'a Experiment) -> Pages<'a, LoggedModel> {
        let experiment = PathBuf::from(&of.location);
        let found = some_folders(&experiment.join(MODELS));
        let pages = self
            .pages(found, "logged model", move |folder| models::logged_model(folder, &experiment));
        pages.map(|page| page.map(|all| all.into_iter().flatten().collect())).boxed_local()
    }

    fn registered_models(&self) -> Pages<'_, RegisteredModel> {
        let found = some_folders(&self.root.join(MODELS));
        self.pages(found, "registered model", registry::registered_model)
    }

    fn versions<'a>(&'a self, model: &'a str) -> Fut<'a, Vec<Version>> {
        Box::pin(async move {
            let folder = file_of(&self.root.join(MODELS), model)?;
            let (versions, problems) = disk::blocking(move || registry::versions(&folder)).await?;
            self.tell(problems);
            Ok(versions)
        })
    }

    fn files<'a>(&'a self, place: &'a Place) -> Fut<'a, Vec<FileInfo>> {
        Box::pin(async move {
            let Some(folder) = disk::path_of_uri(&place.uri) else {
                let why =
                    "the files are elsewhere; import from MLflow's server, which can read them";
                return Err(crate::Error::odd(place.uri.clone(), why));
            };
            disk::files(&folder).await
        })
    }

    fn open<'a>(&'a self, place: &'a Place, path: &'a str) -> Fut<'a, Content> {
        Box::pin(async move {
            let folder = disk::path_of_uri(&place.uri).unwrap_or_default();
            disk::open(&folder.join(path)).await
        })
    }
}
