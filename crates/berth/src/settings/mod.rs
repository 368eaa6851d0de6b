//! Which server, token, team, project and output: flag, then environment, then the project's file,
//! then the user's, then what a local server wrote, then the default.

mod files;
mod login;

pub use login::UserFile;

use crate::fail::{Exit, Failure, Result};
use crate::show::Format;
use berth_api::access::JOB_TOKEN_PREFIX;
use berth_api::client::{Client, Options};
use files::{FoundFile, Local};
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub const DEFAULT_URL: &str = "http://127.0.0.1:7117";

/// Where a value comes from, strongest first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    Flag(&'static str),
    Variable(&'static str),
    ProjectFile(PathBuf),
    UserFile(PathBuf),
    /// What a server on this machine wrote.
    LocalServer(PathBuf),
    Default,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Flag(flag) => write!(f, "flag --{flag}"),
            Source::Variable(name) => write!(f, "variable {name}"),
            Source::ProjectFile(path) => write!(f, "project file {}", path.display()),
            Source::UserFile(path) => write!(f, "user file {}", path.display()),
            Source::LocalServer(path) => write!(f, "local server, {}", path.display()),
            Source::Default => f.write_str("default"),
        }
    }
}

/// A value, and who set it.
#[derive(Clone, PartialEq, Eq)]
pub struct Setting<T> {
    pub value: T,
    pub source: Source,
}

impl<T> Setting<T> {
    fn new(value: T, source: Source) -> Setting<T> {
        Setting { value, source }
    }
}

/// What was given on the command line.
#[derive(Debug, Clone, Default)]
pub struct Flags {
    pub server: Option<String>,
    pub output: Option<Format>,
    pub no_pager: bool,
}

type Variables = Box<dyn Fn(&str) -> Option<String>>;

/// Where to look: injected, so that tests have a world of their own.
pub struct Places {
    pub variable: Variables,
    /// Where the command was started.
    pub here: PathBuf,
}

impl Places {
    pub fn real() -> Places {
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let here = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/"));
        Places { variable: Box::new(variable), here }
    }

    fn home(&self) -> Option<PathBuf> {
        (self.variable)("HOME").map(PathBuf::from)
    }

    /// Where a server on this machine keeps its things.
    fn berth_home(&self) -> Option<PathBuf> {
        let named = (self.variable)("BERTH_HOME").map(PathBuf::from);
        named.or_else(|| Some(self.home()?.join(".berth")))
    }

    fn user_file(&self) -> Option<PathBuf> {
        let folder = (self.variable)("XDG_CONFIG_HOME").map(PathBuf::from);
        let folder = folder.or_else(|| Some(self.home()?.join(".config")))?;
        Some(folder.join("berth").join("config.toml"))
    }
}

pub struct Settings {
    pub url: Setting<String>,
    /// Certificates that the server's is checked against, where the local one has its own.
    ca: Option<PathBuf>,
    token: Option<Setting<String>>,
    pub team: Option<Setting<String>>,
    pub project: Option<Setting<String>>,
    pub output: Setting<Format>,
    user_file: Option<UserFile>,
    /// Jobs run on this machine: the server is the local one, and starts processes.
    pub runs_here: bool,
    /// Jobs may run on this machine, which the server can tell: its address is one of this machine, but
    /// its folder is another user's, or a port leads elsewhere.
    pub may_run_here: bool,
}

impl Settings {
    pub fn load(flags: &Flags, places: &Places) -> Result<Settings> {
        let layers = Layers {
            project: files::project(&places.here)?,
            user: places.user_file().map_or(Ok(None), |path| files::read(&path))?,
            local: places.berth_home().map_or(Ok(None), |home| files::local(&home))?,
            places,
        };
        let url = layers.url(flags);
        let ca = layers.local.as_ref().filter(|local| local.url == url.value);
        let ca = ca.and_then(|local| local.ca.clone());
        let ours = layers.local.as_ref().filter(|local| local.url == url.value);
        let runs_here = ours.is_some_and(|local| !local.containers && is_loopback(&local.url));
        // A job keeps what it submits apart from its own environment.
        let is_in_job = (places.variable)("BERTH_JOB_ID").is_some();
        let may_run_here = ours.is_none() && !is_in_job && is_loopback(&url.value);
        let named = (places.variable)("BERTH_CA").map(PathBuf::from);
        let output = match layers.text("BERTH_OUTPUT", |file| file.output.clone()) {
            Some(set) => Setting::new(format(&set)?, set.source),
            None => Setting::new(Format::default(), Source::Default),
        };
        let output =
            flags.output.map_or(output, |format| Setting::new(format, Source::Flag("output")));
        Ok(Settings {
            ca: named.or(ca),
            token: layers.token(&url)?,
            team: layers.text("BERTH_TEAM", |file| file.team.clone()),
            project: layers.text("BERTH_PROJECT", |file| file.project.clone()),
            output,
            url,
            user_file: places.user_file().map(UserFile::new),
            runs_here,
            may_run_here,
        })
    }

    pub fn client(&self, timeout: Option<Duration>) -> Result<Client> {
        let mut options = Options::new(&self.url.value);
        options.token = self.token.as_ref().map(|token| token.value.clone());
        if let Some(timeout) = timeout {
            (options.timeout, options.patience) = (timeout, Duration::ZERO);
        }
        self.trusting(options)
    }

    /// The same server with another token.
    pub fn client_with(&self, token: &str) -> Result<Client> {
        self.client_for(&self.url.value, token)
    }

    pub fn client_for(&self, url: &str, token: &str) -> Result<Client> {
        self.trusting(Options::new(url).token(token))
    }

    /// Where a login keeps its token.
    pub fn user_file(&self) -> Option<&UserFile> {
        self.user_file.as_ref()
    }

    /// What goes before the token of a login, where something does.
    pub fn overrides_login(&self) -> Option<&Source> {
        let source = &self.token.as_ref()?.source;
        matches!(source, Source::Variable(_) | Source::ProjectFile(_)).then_some(source)
    }

    fn trusting(&self, mut options: Options) -> Result<Client> {
        if let Some(path) = &self.ca {
            let pem = std::fs::read(path);
            let failed = |error| Failure::io(format!("reading {}", path.display()), &error);
            options.ca_pem = Some(pem.map_err(failed)?);
        }
        Ok(Client::new(options)?)
    }

    /// Key, value and source of each, for people. Of the token, it shows only whether one is set.
    pub fn explain(&self) -> Vec<(&'static str, String, String)> {
        let source = |setting: &Setting<String>| setting.source.to_string();
        let text = |key, setting: &Option<Setting<String>>| match setting {
            Some(setting) => (key, setting.value.clone(), source(setting)),
            None => (key, String::new(), Source::Default.to_string()),
        };
        let token = match &self.token {
            Some(token) => ("token", "(hidden)".to_owned(), source(token)),
            None => ("token", String::new(), Source::Default.to_string()),
        };
        vec![
            ("url", self.url.value.clone(), source(&self.url)),
            token,
            text("team", &self.team),
            text("project", &self.project),
            ("output", self.output.value.word().to_owned(), self.output.source.to_string()),
        ]
    }
}

fn is_loopback(url: &str) -> bool {
    let host = url::Url::parse(url).ok().and_then(|url| url.host().map(|host| host.to_owned()));
    match host {
        Some(url::Host::Ipv4(address)) => address.is_loopback(),
        Some(url::Host::Ipv6(address)) => address.is_loopback(),
        Some(url::Host::Domain(name)) => name == "localhost",
        None => false,
    }
}

fn format(set: &Setting<String>) -> Result<Format> {
    clap::ValueEnum::from_str(&set.value, true).map_err(|_| {
        let detail = format!("`{}` of the {} is not an output format", set.value, set.source);
        Failure::usage(detail).next("Choose one of table, wide, json, yaml and name.")
    })
}

struct Layers<'a> {
    project: Option<FoundFile>,
    user: Option<FoundFile>,
    local: Option<Local>,
    places: &'a Places,
}

impl Layers<'_> {
    fn text(
        &self,
        variable: &'static str,
        of: impl Fn(&files::Keys) -> Option<String>,
    ) -> Option<Setting<String>> {
        if let Some(value) = (self.places.variable)(variable) {
            return Some(Setting::new(value, Source::Variable(variable)));
        }
        let project = self.project.as_ref().map(|file| (file, Source::ProjectFile as fn(_) -> _));
        let user = self.user.as_ref().map(|file| (file, Source::UserFile as fn(_) -> _));
        [project, user].into_iter().flatten().find_map(|(file, source)| {
            of(&file.keys).map(|value| Setting::new(value, source(file.path.clone())))
        })
    }

    fn url(&self, flags: &Flags) -> Setting<String> {
        if let Some(url) = &flags.server {
            return Setting::new(url.clone(), Source::Flag("server"));
        }
        let set = self.text("BERTH_URL", |file| file.url.clone());
        let local = || {
            let local = self.local.as_ref()?;
            Some(Setting::new(local.url.clone(), Source::LocalServer(local.path.clone())))
        };
        set.or_else(local).unwrap_or_else(|| Setting::new(DEFAULT_URL.to_owned(), Source::Default))
    }

    /// The token for that server. There is no flag for it: other users of a machine see what
    /// stands on command lines.
    fn token(&self, url: &Setting<String>) -> Result<Option<Setting<String>>> {
        if let Some(token) = self.token_of_job()? {
            return Ok(Some(token));
        }
        match self.text("BERTH_TOKEN", |file| file.token.clone()) {
            Some(token) => {
                if let Source::ProjectFile(path) | Source::UserFile(path) = &token.source {
                    files::refuse_readable_by_others(path)?;
                }
                self.refuse_for_stranger(url, &token)?;
                Ok(Some(token))
            }
            None => self.local_token(url),
        }
    }

    /// Inside a job: the token that the server keeps fresh in a file. `BERTH_TOKEN` is the one that
    /// the job was started with, unless its user has put another one there.
    fn token_of_job(&self) -> Result<Option<Setting<String>>> {
        const FILE: &str = "BERTH_TOKEN_FILE";
        let Some(path) = (self.places.variable)(FILE) else { return Ok(None) };
        let given = (self.places.variable)("BERTH_TOKEN");
        if given.is_some_and(|token| !token.starts_with(JOB_TOKEN_PREFIX)) {
            return Ok(None);
        }
        let token = files::secret(Path::new(&path))?;
        Ok(token.map(|token| Setting::new(token, Source::Variable(FILE))))
    }

    /// A project's file may come with code of others. It must not send a token elsewhere than
    /// its owner meant.
    fn refuse_for_stranger(&self, url: &Setting<String>, token: &Setting<String>) -> Result<()> {
        let (Source::ProjectFile(project), Source::UserFile(user)) = (&url.source, &token.source)
        else {
            return Ok(());
        };
        let own = self.user.as_ref().and_then(|file| file.keys.url.as_ref());
        if own == Some(&url.value) {
            return Ok(());
        }
        let detail = format!(
            "{} names the server {}, and the token of {} may not be meant for it",
            project.display(),
            url.value,
            user.display()
        );
        Err(Failure::new(Exit::Refused, detail).next(
            "If you trust that server, set BERTH_TOKEN, or name the server in your own file too.",
        ))
    }

    /// What `berth up` wrote goes to the server of this machine only.
    fn local_token(&self, url: &Setting<String>) -> Result<Option<Setting<String>>> {
        let Some(home) = self.places.berth_home() else { return Ok(None) };
        let ours = match &self.local {
            Some(local) => local.url == url.value,
            None => url.value == DEFAULT_URL,
        };
        let path = home.join("admin.token");
        match ours {
            true => {
                Ok(files::secret(&path)?
                    .map(|value| Setting::new(value, Source::LocalServer(path))))
            }
            false => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests;
