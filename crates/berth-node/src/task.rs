//! What one lease runs.

use crate::isolation::Confine;
use crate::log::LogLimits;
use berth_model::{Bytes, Cpu, LeaseId, Name, Span, Time};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

/// Runs the setup of a job before its command.
const SETUP: &str = include_str!("setup.sh");

/// How the command becomes processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Launch {
    #[default]
    Once,
    /// `count` processes that find their place in `RANK` and `SLURM_PROCID`.
    Ranks { count: u32 },
    /// One `torchrun`, which starts that many.
    Torchrun { count: u32 },
}

/// The GPUs of the task. Declared ones are bookkeeping and have no UUID.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Gpus {
    Declared { indices: Vec<u32> },
    Real { indices: Vec<u32>, uuids: Vec<String> },
}

impl Default for Gpus {
    fn default() -> Gpus {
        Gpus::Declared { indices: Vec::new() }
    }
}

impl Gpus {
    pub fn indices(&self) -> &[u32] {
        match self {
            Gpus::Declared { indices } | Gpus::Real { indices, .. } => indices,
        }
    }
}

/// Where this task stands among the tasks of its job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gang {
    /// The host of each task, in the order of the tasks.
    pub hosts: Vec<String>,
    pub node_rank: u32,
    pub master_addr: String,
    pub master_port: u16,
}

impl Gang {
    /// A task that is alone. Its port follows from the job, so that two jobs of one machine do
    /// not meet.
    pub fn alone(lease: LeaseId, host: &str) -> Gang {
        let element = lease.job.element.map_or(0, u64::from);
        let offset = (lease.job.number + element * 7_919) % 10_000;
        Gang {
            hosts: vec![host.to_owned()],
            node_rank: 0,
            master_addr: "127.0.0.1".to_owned(),
            master_port: 20_000 + u16::try_from(offset).expect("below ten thousand"),
        }
    }
}

/// How a service tells that it serves, tried on the task's port.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ready {
    Connect,
    /// A GET of this path is answered with a status below 400.
    Http {
        path: String,
    },
}

/// All that is needed to run the task of one lease.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskSpec {
    pub lease: LeaseId,
    pub name: Name,
    pub team: Name,
    pub queue: Name,
    pub command: Vec<String>,
    pub directory: PathBuf,
    /// May hold secrets: passed to the supervisor in memory, never stored or printed.
    pub env: BTreeMap<String, String>,
    pub launch: Launch,
    /// A script that runs before the command, once for each `BERTH_SETUP_DIR`.
    #[serde(default)]
    pub setup: Option<String>,
    pub gpus: Gpus,
    pub cpu: Option<Cpu>,
    pub memory: Option<Bytes>,
    pub gang: Gang,
    /// What a stop gives the task; told to the frameworks that have a limit of their own.
    pub grace: Span,
    pub ends_at: Option<Time>,
    /// How long it may run. Its supervisor ends it then, whether or not there is a server.
    #[serde(default)]
    pub runs_for: Option<Span>,
    pub checkpoint: Option<PathBuf>,
    pub resume_from: Option<PathBuf>,
    pub model: Option<PathBuf>,
    pub scratch: Option<PathBuf>,
    /// The tracked run, the same through all attempts.
    pub run: Option<String>,
    pub port: Option<u16>,
    pub ready: Option<Ready>,
    /// How long it may take to become ready; as long as it likes where left out.
    #[serde(default)]
    pub ready_within: Option<Span>,
    pub logs: LogLimits,
    /// Needed where tasks run in sandboxes.
    #[serde(default)]
    pub confine: Option<Confine>,
}

impl TaskSpec {
    /// A task with nothing but a command and a directory.
    pub fn new(lease: LeaseId, command: &[&str], directory: impl Into<PathBuf>) -> TaskSpec {
        TaskSpec {
            lease,
            name: Name::from(format!("job-{}", lease.job)),
            team: Name::default(),
            queue: Name::default(),
            command: command.iter().map(|part| (*part).to_owned()).collect(),
            directory: directory.into(),
            env: BTreeMap::new(),
            launch: Launch::Once,
            setup: None,
            gpus: Gpus::default(),
            cpu: None,
            memory: None,
            gang: Gang::alone(lease, "localhost"),
            grace: Span::secs(30),
            ends_at: None,
            runs_for: None,
            checkpoint: None,
            resume_from: None,
            model: None,
            scratch: None,
            run: None,
            port: None,
            ready: None,
            ready_within: None,
            logs: LogLimits::default(),
            confine: None,
        }
    }

    /// How many processes the supervisor starts.
    pub fn processes(&self) -> u32 {
        match self.launch {
            Launch::Once | Launch::Torchrun { .. } => 1,
            Launch::Ranks { count } => count,
        }
    }

    /// The command as it is executed. `torchrun` finds nodes and ports in `PET_*`; `--no-python`
    /// lets it start whatever the user wrote, a shell line as well as a script.
    pub fn argv(&self) -> Vec<String> {
        let Some(setup) = &self.setup else { return self.launched() };
        let head = ["sh", "-c", SETUP, "berth-setup", setup].map(str::to_owned);
        head.into_iter().chain(self.launched()).collect()
    }

    fn launched(&self) -> Vec<String> {
        match self.launch {
            Launch::Once | Launch::Ranks { .. } => self.command.clone(),
            Launch::Torchrun { .. } => {
                let is_script = self.command.first().is_some_and(|word| word.ends_with(".py"));
                let flag = if is_script { None } else { Some("--no-python".to_owned()) };
                let head = std::iter::once("torchrun".to_owned()).chain(flag);
                head.chain(self.command.iter().cloned()).collect()
            }
        }
    }

    /// What is wrong with it, if anything, that no start could mend.
    pub(crate) fn fault(&self) -> Option<String> {
        if self.command.is_empty() {
            return Some("the command is empty".to_owned());
        }
        if self.processes() == 0 {
            return Some("it has no ranks; a launch by ranks needs at least one".to_owned());
        }
        if !self.directory.is_absolute() {
            return Some(format!(
                "the working directory {} is not an absolute path",
                self.directory.display()
            ));
        }
        if self.ready.is_some() && self.port.is_none() {
            return Some("a ready check needs a port".to_owned());
        }
        let name = self.env.keys().find(|name| name.is_empty() || name.contains(['=', '\0']))?;
        Some(format!("{name:?} cannot be the name of an environment variable"))
    }

    /// The same without the values of the environment, for the disk.
    pub(crate) fn without_secrets(&self) -> TaskSpec {
        let env = self.env.keys().map(|name| (name.clone(), String::new())).collect();
        TaskSpec { env, ..self.clone() }
    }
}

impl fmt::Debug for TaskSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&String> = self.env.keys().collect();
        f.debug_struct("TaskSpec")
            .field("lease", &self.lease)
            .field("name", &self.name)
            .field("command", &self.command)
            .field("directory", &self.directory)
            .field("env", &names)
            .field("launch", &self.launch)
            .field("gpus", &self.gpus)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use berth_model::JobId;

    fn spec(command: &[&str]) -> TaskSpec {
        TaskSpec::new(LeaseId { job: JobId::new(17), task: 0, attempt: 0 }, command, "/")
    }

    #[test]
    fn printing_a_task_shows_the_names_of_its_environment_and_no_value() {
        let mut task = spec(&["true"]);
        task.env.insert("TOKEN".to_owned(), "hunter2".to_owned());
        let text = format!("{task:?}");
        assert!(text.contains("TOKEN") && !text.contains("hunter2"), "{text}");
        let stored = serde_json::to_string(&task.without_secrets()).unwrap();
        assert!(stored.contains("TOKEN") && !stored.contains("hunter2"), "{stored}");
    }

    #[test]
    fn torchrun_is_put_before_a_script_and_before_any_other_command() {
        let mut task = spec(&["train.py", "--lr", "1"]);
        task.launch = Launch::Torchrun { count: 8 };
        assert_eq!(task.argv(), ["torchrun", "train.py", "--lr", "1"]);
        task.command = vec!["bash".into(), "-c".into(), "python x.py".into()];
        assert_eq!(task.argv(), ["torchrun", "--no-python", "bash", "-c", "python x.py"]);
    }

    #[test]
    fn what_no_start_could_mend_is_said_at_once() {
        let fault = |change: fn(&mut TaskSpec)| {
            let mut task = spec(&["true"]);
            change(&mut task);
            task.fault()
        };
        assert_eq!(fault(|_| ()), None);
        assert!(fault(|t| t.command.clear()).unwrap().contains("empty"));
        assert!(fault(|t| t.directory = "x".into()).unwrap().contains("absolute"));
        assert!(fault(|t| t.launch = Launch::Ranks { count: 0 }).unwrap().contains("rank"));
        assert!(fault(|t| t.ready = Some(Ready::Connect)).unwrap().contains("port"));
        assert!(fault(|t| drop(t.env.insert("A=B".into(), "".into()))).unwrap().contains("A=B"));
    }
}
