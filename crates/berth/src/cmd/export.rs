//! Which variables of the terminal a job gets, as with `sbatch --export`. docs/cli.md has the rule.

use crate::fail::{Failure, Result};
use berth_file::job::JobFile;
use std::collections::BTreeMap;
use std::ffi::OsString;

/// `--export`: which variables go with the job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Export {
    All,
    None,
    Names(Vec<String>),
}

/// Reads the value of the flag.
pub fn parse(text: &str) -> Result<Export, crate::fail::BadValue> {
    match text.to_ascii_lowercase().as_str() {
        "all" => return Ok(Export::All),
        "none" => return Ok(Export::None),
        _ => {}
    }
    let names: Vec<String> = text.split(',').map(|name| name.trim().to_owned()).collect();
    match names.iter().find(|name| !is_name(name)) {
        None => Ok(Export::Names(names)),
        Some(odd) => Err(crate::fail::BadValue(format!(
            "`{odd}` is not the name of a variable; expected all, none, or names separated by \
             commas (set a value with -e NAME=VALUE)"
        ))),
    }
}

/// A longer value is data, not a setting.
const LONGEST_VALUE: usize = 16 << 10;
/// All together. The longest are left out first.
const MOST_BYTES: usize = 128 << 10;

/// Names that stand for a place, a login or a terminal, and are wrong elsewhere.
const OF_THE_SESSION: [&str; 42] = [
    "HOME",
    "USER",
    "LOGNAME",
    "USERNAME",
    "MAIL",
    "SHELL",
    "PWD",
    "OLDPWD",
    "SHLVL",
    "HOSTNAME",
    "HOST",
    "HOSTTYPE",
    "TMPDIR",
    "TMP",
    "TEMP",
    "TERM",
    "COLORTERM",
    "TERMCAP",
    "COLUMNS",
    "LINES",
    "LS_COLORS",
    "LSCOLORS",
    "PS1",
    "PS2",
    "PS4",
    "PROMPT",
    "PROMPT_COMMAND",
    "RPROMPT",
    "BASH_ENV",
    "ENV",
    "DISPLAY",
    "XAUTHORITY",
    "WINDOWID",
    "STY",
    "TMUX",
    "TMUX_PANE",
    "EDITOR",
    "VISUAL",
    "PAGER",
    "LESSOPEN",
    "LESSCLOSE",
    "_",
];

const OF_THE_SESSION_BY_START: [&str; 30] = [
    "BERTH_",
    "XDG_",
    "DBUS_",
    "SSH_",
    "GPG_",
    "GNOME_",
    "KDE_",
    "GTK_",
    "QT_",
    "WAYLAND_",
    "VTE_",
    "VSCODE_",
    "TERM_",
    "ITERM_",
    "KITTY_",
    "WT_",
    "WSL",
    "HIST",
    "LESS_",
    "SYSTEMD_",
    "LISTEN_",
    "BASH_FUNC_",
    "STARSHIP_",
    "P9K_",
    "ZSH_",
    "FISH_",
    "NOTIFY_SOCKET",
    "JOURNAL_STREAM",
    "INVOCATION_ID",
    "KRB5CCNAME",
];

/// What Berth sets in each job; a value from outside would be wrong.
const SET_BY_BERTH: [&str; 14] = [
    "CUDA_VISIBLE_DEVICES",
    "NVIDIA_VISIBLE_DEVICES",
    "RANK",
    "LOCAL_RANK",
    "WORLD_SIZE",
    "LOCAL_WORLD_SIZE",
    "NODE_RANK",
    "GROUP_RANK",
    "MASTER_ADDR",
    "MASTER_PORT",
    "NCCL_HOSTID",
    "WANDB_RUN_ID",
    "WANDB_RESUME",
    "PORT",
];

const SET_BY_BERTH_BY_START: [&str; 6] =
    ["CUDA_MPS_", "SLURM_", "PET_", "TORCHELASTIC_", "PMI_", "PMIX_"];

/// What becomes of a terminal's variables.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Chosen {
    pub variables: BTreeMap<String, String>,
    /// Names that look like secrets, and were left out because of that.
    pub secrets: Vec<String>,
}

/// The variables that go with a job. What was asked for by name and cannot go is an error.
pub fn choose(
    export: &Export,
    all: impl IntoIterator<Item = (OsString, OsString)>,
) -> Result<Chosen> {
    let readable = |(name, value): (OsString, OsString)| {
        Some((name.into_string().ok()?, value.into_string().ok()?))
    };
    let all: BTreeMap<String, String> = all.into_iter().filter_map(readable).collect();
    let mut chosen = Chosen::default();
    match export {
        Export::None => {}
        Export::Names(names) => {
            for name in names {
                let value = named(name, &all)?;
                chosen.variables.insert(name.clone(), value);
            }
        }
        Export::All => {
            for (name, value) in all {
                if is_secret(&name, &value) {
                    chosen.secrets.push(name);
                } else if goes_along(&name, &value) {
                    chosen.variables.insert(name, value);
                }
            }
            shorten(&mut chosen.variables);
        }
    }
    Ok(chosen)
}

fn named(name: &str, all: &BTreeMap<String, String>) -> Result<String> {
    let Some(value) = all.get(name) else {
        return Err(Failure::usage(format!("--export names {name}, which is not set here"))
            .next(format!("Set it, such as `{name}=VALUE berth run ...`, or leave it out.")));
    };
    if name.starts_with("BERTH_") {
        return Err(Failure::usage(format!(
            "--export names {name}, which Berth itself sets in jobs"
        ))
        .next("Leave it out, or set a variable of another name with -e."));
    }
    if is_secret(name, value) {
        return Err(Failure::usage(format!(
            "{name} looks like a secret, and a job file is readable"
        ))
        .next(format!(
            "Save it with `berth secret set {name}`, and run the job with `--secret {name}`."
        )));
    }
    if !is_plain(value) || value.len() > LONGEST_VALUE {
        return Err(Failure::usage(format!(
            "--export names {name}, whose value is longer than 16 KiB or not plain text"
        ))
        .next("Put the value into a file that the job reads."));
    }
    Ok(value.clone())
}

fn goes_along(name: &str, value: &str) -> bool {
    let starts = |all: &[&str]| all.iter().any(|start| name.starts_with(start));
    let is_ours = SET_BY_BERTH.contains(&name) || starts(&SET_BY_BERTH_BY_START);
    let is_of_session = OF_THE_SESSION.contains(&name) || starts(&OF_THE_SESSION_BY_START);
    is_name(name) && is_plain(value) && value.len() <= LONGEST_VALUE && !is_ours && !is_of_session
}

/// By its name, or because the value is one that only secrets have.
fn is_secret(name: &str, value: &str) -> bool {
    let name = name.to_ascii_uppercase();
    let words = [
        "SECRET",
        "PASSWORD",
        "PASSWD",
        "PASSPHRASE",
        "CREDENTIAL",
        "APIKEY",
        "PRIVATE_KEY",
        "COOKIE",
    ];
    let ends = [
        "TOKEN",
        "_KEY",
        "_PASS",
        "_PWD",
        "_AUTH",
        "_PAT",
        "_DSN",
        "_KEYS",
        "_TOKENS",
        "DATABASE_URL",
        "REDIS_URL",
    ];
    let starts = ["AWS_", "AZURE_", "GOOGLE_APPLICATION_"];
    let known =
        ["sk-", "hf_", "ghp_", "gho_", "ghs_", "github_pat_", "glpat-", "xox", "AKIA", "eyJ"];
    name == "KEY"
        || words.iter().any(|word| name.contains(word))
        || ends.iter().any(|end| name.ends_with(end))
        || starts.iter().any(|start| name.starts_with(start))
        || (value.len() >= 20 && known.iter().any(|start| value.starts_with(start)))
        || value.contains("-----BEGIN ")
        || has_password(value)
}

/// `scheme://user:password@host`.
fn has_password(value: &str) -> bool {
    value.split("://").skip(1).any(|rest| {
        let authority = rest.split(['/', '?', '#', ' ']).next().unwrap_or_default();
        authority.rsplit_once('@').is_some_and(|(user, _)| user.contains(':'))
    })
}

fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

fn is_plain(value: &str) -> bool {
    value.chars().all(|c| !c.is_control() || c == '\n' || c == '\t')
}

/// Leaves out the longest values until all fit.
fn shorten(all: &mut BTreeMap<String, String>) {
    let size = |(name, value): (&String, &String)| name.len() + value.len();
    let mut bytes: usize = all.iter().map(size).sum();
    while bytes > MOST_BYTES {
        let longest = all.iter().max_by_key(|(_, value)| value.len());
        let Some((name, value)) = longest.map(|(name, value)| (name.clone(), value.len())) else {
            return;
        };
        bytes -= name.len() + value;
        all.remove(&name);
    }
}

/// Lays the variables below what the file, its template and flags say.
pub fn lay_under(file: &mut JobFile, template: &JobFile, chosen: Chosen) {
    for (name, value) in chosen.variables {
        let swept = |of: &JobFile| {
            of.sweep.iter().flat_map(|sweep| &sweep.parameters).any(|one| one.name == name)
        };
        let is_said = |of: &JobFile| {
            of.env.0.contains_key(&name) || of.secrets.contains_key(&name) || swept(of)
        };
        if !is_said(file) && !is_said(template) {
            file.env.0.insert(name, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terminal(pairs: &[(&str, &str)]) -> Vec<(OsString, OsString)> {
        pairs.iter().map(|(name, value)| (OsString::from(name), OsString::from(value))).collect()
    }

    fn chosen(export: &Export, pairs: &[(&str, &str)]) -> String {
        match choose(export, terminal(pairs)) {
            Ok(chosen) => chosen.variables.into_keys().collect::<Vec<_>>().join(" "),
            Err(failure) => failure.to_string(),
        }
    }

    #[test]
    fn a_jobs_variables_and_an_active_environment_go_along() {
        let pairs = [
            ("FOO", "bar"),
            ("PATH", "/venv/bin:/usr/bin"),
            ("VIRTUAL_ENV", "/venv"),
            ("CONDA_PREFIX", "/conda/envs/a"),
            ("LD_LIBRARY_PATH", "/opt/lib"),
            ("PYTHONPATH", "src"),
            ("OMP_NUM_THREADS", "4"),
            ("LANG", "C.UTF-8"),
        ];
        let mut names: Vec<&str> = pairs.iter().map(|(name, _)| *name).collect();
        names.sort_unstable();
        assert_eq!(chosen(&Export::All, &pairs), names.join(" "));
        assert_eq!(chosen(&Export::None, &pairs), "");
    }

    #[test]
    fn nothing_that_looks_like_a_secret_goes_along() {
        let pairs = [
            ("HF_TOKEN", "x"),
            ("OPENAI_API_KEY", "x"),
            ("MY_SECRET_PLACE", "x"),
            ("DB_PASSWORD", "x"),
            ("AWS_PROFILE", "x"),
            ("aws_secret_access_key", "x"),
            ("PIP_INDEX_URL", "https://kim:hunter2@pypi.example/simple"),
            ("PLAIN", "hf_abcdefghijklmnopqrst"),
            ("PEM", "-----BEGIN PRIVATE KEY-----\nx"),
            ("BERTH_TOKEN", "brt_1"),
        ];
        assert_eq!(chosen(&Export::All, &pairs), "");
        let found = choose(&Export::All, terminal(&pairs)).unwrap();
        assert_eq!(found.secrets.len(), pairs.len());
        assert_eq!(chosen(&Export::All, &[("URL", "https://kim@host/a:b")]), "URL");
    }

    #[test]
    fn what_is_of_this_terminal_or_set_by_berth_stays_here() {
        let pairs = [
            ("HOME", "/root"),
            ("USER", "kim"),
            ("PWD", "/work"),
            ("SHLVL", "1"),
            ("TERM", "xterm"),
            ("SSH_CONNECTION", "1"),
            ("DISPLAY", ":0"),
            ("XDG_RUNTIME_DIR", "/run"),
            ("DBUS_SESSION_BUS_ADDRESS", "x"),
            ("LS_COLORS", "x"),
            ("BERTH_URL", "x"),
            ("CUDA_VISIBLE_DEVICES", "0"),
            ("RANK", "3"),
            ("SLURM_JOB_ID", "4"),
            ("BASH_FUNC_module%%", "() { x; }"),
        ];
        assert_eq!(chosen(&Export::All, &pairs), "");
    }

    #[test]
    fn values_that_are_no_plain_text_or_too_long_stay_here() {
        use std::os::unix::ffi::OsStringExt;
        let long = "x".repeat(LONGEST_VALUE + 1);
        assert_eq!(chosen(&Export::All, &[("A", &long), ("B", "\x1b[31m"), ("C", "a\nb")]), "C");
        let bytes = (OsString::from("RAW"), OsString::from_vec(vec![0xff]));
        assert!(choose(&Export::All, [bytes]).unwrap().variables.is_empty());
        let many: Vec<(String, String)> =
            (0..20).map(|n| (format!("V{n:02}"), "x".repeat(10_000 + n))).collect();
        let many: Vec<(&str, &str)> =
            many.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let kept = choose(&Export::All, terminal(&many)).unwrap().variables;
        assert!(kept.len() == 13 && kept.contains_key("V00") && !kept.contains_key("V19"));
    }

    #[test]
    fn variables_that_are_named_go_along_or_say_why_not() {
        let names = |text: &str| parse(text).unwrap();
        let pairs = [("FOO", "bar"), ("HOME", "/root"), ("HF_TOKEN", "x")];
        assert_eq!(chosen(&names("FOO,HOME"), &pairs), "FOO HOME");
        assert!(chosen(&names("NOPE"), &pairs).contains("NOPE, which is not set here"));
        let secret = chosen(&names("HF_TOKEN"), &pairs);
        assert!(secret.contains("next: Save it with `berth secret set HF_TOKEN`"), "{secret}");
        assert_eq!([names("ALL"), names("none")], [Export::All, Export::None]);
        assert!(parse("A=1").unwrap_err().to_string().contains("-e NAME=VALUE"));
    }

    #[test]
    fn what_a_file_or_its_template_says_goes_before_the_terminal() {
        let read = |text: &str| berth_file::job::read(text).unwrap().file;
        let mut file = read("env: {A: file}\nsecrets: [B]\nsweep: {E: [1, 2]}\n");
        let pairs = [("A", "x"), ("B", "x"), ("C", "x"), ("D", "x"), ("E", "x")];
        let chosen = choose(&Export::All, terminal(&pairs)).unwrap();
        lay_under(&mut file, &read("env: {C: template}\n"), chosen);
        assert_eq!(file.env, read("env: {A: file, D: x}\n").env);
    }
}
