//! Lists the Python packages of a job on this machine: names and versions from the folders
//! `NAME-VERSION.dist-info` of the interpreter in its `PATH`. It does not run any program of the user.

use super::facts::Facts;
use berth_service::Service;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::timeout;

/// The maximum number of `PATH` folders to search, and of packages to list.
const MOST_FOLDERS: usize = 64;
const MOST_PACKAGES: usize = 10_000;
const ENDING: &str = ".dist-info";
/// An unresponsive disk may block one thread of the server, but not more.
static TURN: Semaphore = Semaphore::const_new(1);
/// How long other jobs wait for their turns.
const PATIENCE: Duration = Duration::from_secs(5);

/// One package per line, like `pip freeze`; `None` if there are no packages.
pub async fn of(service: &Service, facts: &Facts) -> Option<String> {
    if service.host.runs_containers() || facts.image.is_some() {
        return None;
    }
    let (venv, path) = (facts.venv.clone(), facts.path.clone());
    let look = async move {
        let turn = TURN.acquire().await.ok()?;
        let found = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            let path = path.or_else(|| std::env::var("PATH").ok()).unwrap_or_default();
            packages(venv.as_deref(), &path)
        });
        found.await.ok().flatten()
    };
    timeout(PATIENCE, look).await.ok().flatten()
}

fn packages(venv: Option<&Path>, path: &str) -> Option<String> {
    let of_path = path.split(':').filter(|folder| folder.starts_with('/')).map(PathBuf::from);
    let folders = venv.map(|venv| venv.join("bin")).into_iter().chain(of_path);
    let python = folders
        .take(MOST_FOLDERS)
        .find(|folder| ["python3", "python"].iter().any(|name| folder.join(name).exists()))?;
    let home = python.parent()?;
    let mut found = BTreeSet::new();
    for lib in ["lib", "lib64", "local/lib"] {
        for folder in entries(&home.join(lib)) {
            let is_python = name(&folder).starts_with("python3");
            for packages in is_python.then_some(["site-packages", "dist-packages"]).iter().flatten()
            {
                for entry in entries(&folder.join(packages)) {
                    found.extend(package(&name(&entry)));
                    if found.len() >= MOST_PACKAGES {
                        break;
                    }
                }
            }
        }
    }
    (!found.is_empty()).then(|| found.into_iter().collect::<Vec<_>>().join("\n") + "\n")
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let read = fs::read_dir(folder).into_iter().flatten().flatten();
    read.take(MOST_PACKAGES * 4).map(|entry| entry.path()).collect()
}

fn name(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

fn package(folder: &str) -> Option<String> {
    let (name, version) = folder.strip_suffix(ENDING)?.split_once('-')?;
    Some(format!("{}=={version}", name.replace('_', "-").to_lowercase()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_are_those_beside_the_first_python_of_the_path() {
        let folder = tempfile::tempdir().unwrap();
        let make = |path: &str| fs::create_dir_all(folder.path().join(path)).unwrap();
        for home in ["first", "second"] {
            make(&format!("{home}/bin"));
            fs::write(folder.path().join(home).join("bin/python3"), "").unwrap();
        }
        make("none/bin");
        make("first/lib/python3.11/site-packages/torch-2.9.0.dist-info");
        make("first/lib/python3.11/site-packages/Typing_Extensions-4.1.dist-info");
        make("first/lib/python3.11/site-packages/torch");
        make("second/lib/python3.12/site-packages/numpy-2.0.dist-info");
        let at = |home: &str| folder.path().join(home).join("bin").display().to_string();
        let path = [at("none"), at("first"), at("second")].join(":");
        let expected = "torch==2.9.0\ntyping-extensions==4.1\n";
        assert_eq!(packages(None, &path).as_deref(), Some(expected));
        let venv = folder.path().join("second");
        assert_eq!(packages(Some(&venv), &path).as_deref(), Some("numpy==2.0\n"));
        assert_eq!(packages(None, &at("none")), None);
    }
}
