use super::*;
use clap::CommandFactory;
use clap::error::ErrorKind;
use std::path::{Path, PathBuf};

#[test]
fn the_names_of_other_schedulers_lead_to_our_commands() {
    let tip = |word: &str| {
        let error = Cli::try_parse_from(["berth", word, "3"]).err().expect("no such command");
        super::tip(&error)
    };
    assert_eq!(tip("cancel"), Some("`berth stop JOB` stops a job"));
    assert_eq!(tip("squeue"), Some("`berth ps` lists jobs"));
    assert_eq!(tip("nonsense"), None);
    let commands = Cli::command();
    let words = ELSEWHERE.iter().flat_map(|(words, _)| words.iter());
    for word in words {
        assert!(commands.find_subcommand(word).is_none(), "{word} is a command of ours");
    }
}

/// A line for every command, as docs/cli.md has them.
const LINES: &[&str] = &[
    "up --home /srv/berth --listen 0.0.0.0:7117 --tls-cert c.pem --tls-key k.pem --gpus 8xH100",
    "reserve --kubeconfig cluster.yaml",
    "fetch-code nlp sha256:2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881 /berth/code",
    "run -g H100:8 -- python train.py",
    "run @sft -f job.yaml -d -y --env A=1",
    "run --wait -o json -- true",
    "run --export none -- true",
    "clone 17 --without after,begin",
    "run --export FOO,PATH -- true",
    "run --dry-run -- true",
    "plan -g 1 --time 2h -- python train.py",
    "ps",
    "ps 17 bert",
    "ps --all --mine --team nlp --state running,pending --since 2d -n 20 -w",
    "why 17",
    "describe 17 -w",
    "show 17 -o json",
    "events",
    "events 17 -f --since 2h -n 20 --kind job,node",
    "policy show --changed",
    "policy diff -f policy.yaml --exit-code",
    "policy history -n 5",
    "logs 17 -f -n 100 --since 2h --search loss --timestamps --rank 3 --attempt 0",
    "logs 17 --search loss= --regex --ignore-case --everywhere --count",
    "ps --sort -cost",
    "ps --label owner=kim --label a=b --columns id,name,labels --elements 17",
    "timeline 17 -w",
    "leases --from 2d --node n1 --team nlp -n 50",
    "files 17 out",
    "cp 17:out/model.pt . --force",
    "code 17 old",
    "run --code . --setup make -- make test",
    "gpus --since 1d --figure power",
    "drain n1 --preview",
    "drain n1 --reason update",
    "cordon n1 --reason update",
    "stop 17 -y",
    "clone 17 -d --time 6h",
    "run -g 8xH100 -- true",
    "stop 17 --preview",
    "cost --over day --by user --csv",
    "cost --rows 50 --team nlp",
    "cost --idle --from 7d",
    "budget forecast nlp",
    "metrics 17 -w --since 1h --step 30s --figure cpu,memory",
    "shell 17",
    "shell 17 --task 1 -- nvidia-smi -L",
    "top --once",
    "stop 17 18 --now",
    "pause 17",
    "resume 17",
    "clone 17 --resume --time 6h -- python eval.py",
    "set 17 priority=high time=6h",
    "queue",
    "queue nlp -w",
    "share",
    "gpus -o wide",
    "gpu-check --gpu 0 -o json",
    "node-agent --listen :9400",
    "nodes n1",
    "drain n1",
    "cordon n1 n2",
    "uncordon n1",
    "uncordon n1 --gpu 3 --no-check",
    "cost --by team,project --from 30d",
    "budget list",
    "budget set nlp 5000 --per month --action block --at 80% --at 100%",
    "budget rm nlp",
    "apply -f teams.yaml -f queues.yaml --prune --dry-run",
    "apply -f teams.yaml --prune -y",
    "diff -f teams.yaml --exit-code",
    "login --token",
    "login --no-browser",
    "logout",
    "session list",
    "session revoke s1",
    "token create laptop --scope jobs --expires 30d",
    "token list",
    "token revoke t1",
    "user list",
    "user add kim --role operator",
    "user rm kim --force -y",
    "team list",
    "team add nlp --parent research",
    "team rm nlp -y",
    "member list nlp",
    "member set nlp kim team_lead",
    "member rm nlp kim",
    "project list",
    "project add llama --team nlp",
    "project rm llama --force -y",
    "secret set HF_TOKEN --team nlp",
    "secret list",
    "secret rm HF_TOKEN",
    "volume list --team nlp -o json",
    "volume create data --team nlp",
    "volume delete data --force -y",
    "experiments list --all",
    "experiments share bert --with nlp",
    "experiments unshare bert --with nlp",
    "experiments shares bert -o json",
    "experiments delete bert -y",
    "experiments restore bert",
    "experiments --by cost-per-result --metric val_acc --goal 0.9 --group project",
    "runs --experiment bert --filter metrics.loss<0.2 --sort metrics.loss -n 5",
    "runs --sort -cost --columns name,cost,gpu-hours",
    "runs --sort metrics.loss --group-by params.lr",
    "runs show 17",
    "runs compare 17 18 --all",
    "runs delete 17 first -y",
    "runs restore 17",
    "runs clean --older-than 7d --dry-run",
    "models list -o json",
    "models versions chat",
    "models share chat --with nlp",
    "models unshare chat --with nlp --team audio",
    "models shares chat -o json",
    "models alias chat champion 3",
    "models alias chat champion --delete",
    "models webhook list -o json",
    "models webhook add deployer https://deploy.example.com/hook --on model_version.created --secret",
    "models webhook test deployer",
    "models webhook rm deployer",
    "lineage model:chat@3 --up --team nlp",
    "lineage run:0b3c -o openlineage",
    "reproduce run:0b3c --submit --anyway",
    "reproduce 17 -o json",
    "import mlflow http://mlflow.example.org:5000 -t nlp -e digits --model chat --prefix old/ --dry-run",
    "import mlflow sqlite:///mlflow.db --artifacts mlartifacts --resume --strict --check sizes -o json",
    "export mlflow mlruns -t nlp -e digits --resume --check none",
    "data push corpus c4@v3 --parent 2 --note cleaned --team nlp",
    "data ls c4",
    "data show c4@v3 --files",
    "data diff c4@v2 c4@v3",
    "data get c4@v3 corpus",
    "data rm c4@v1 -y",
    "data clean --older-than 7d --dry-run -y",
    "storage list",
    "storage quota nlp 5TiB",
    "template set sft -f sft.yaml",
    "template list",
    "template show sft",
    "template rm sft",
    "schedule list",
    "schedule pause s1",
    "schedule resume s1",
    "schedule rm s1",
    "audit list --who kim --since 2d",
    "audit list --refused",
    "audit list --target sft",
    "audit verify",
    "audit rotate-key",
    "backup",
    "kube --kubeconfig cluster.yaml --scheduler-name berth --queue default",
    "kube crds",
    "restore berth.backup --home berth-2",
    "debug world --anonymous",
    "whoami",
    "config explain",
    "config server",
    "completion bash",
    "completion zsh --install",
    "completion --install",
    "doctor -o json --machine",
    "doctor --kube --kubeconfig cluster.yaml",
    "ps --all --no-pager",
    "sim demo -o json",
];

fn parse(line: &str) -> Result<Cli, clap::Error> {
    Cli::try_parse_from(std::iter::once("berth").chain(line.split(' ')))
}

#[test]
fn every_command_is_read() {
    for line in LINES {
        parse(line).map(drop).unwrap_or_else(|error| panic!("berth {line}\n{error}"));
    }
}

/// The commands that do something, with the words that lead to them.
pub fn leaves(command: &clap::Command, path: &str) -> Vec<String> {
    let below = command.get_subcommands().filter(|below| below.get_name() != "help");
    let leaves: Vec<String> = below
        .flat_map(|below| leaves(below, format!("{path} {}", below.get_name()).trim()))
        .collect();
    if leaves.is_empty() { vec![path.to_owned()] } else { leaves }
}

#[test]
fn no_command_is_left_out_of_the_lines_above() {
    let command = Cli::command();
    for leaf in leaves(&command, "").iter().filter(|leaf| !leaf.starts_with("sim ")) {
        let shown = |line: &&&str| **line == leaf || line.starts_with(&format!("{leaf} "));
        assert!(LINES.iter().any(|line| shown(&line)), "no line for `berth {leaf}`");
    }
}

#[test]
fn the_whole_of_it_is_sound() {
    Cli::command().debug_assert();
}

#[test]
fn the_output_can_be_chosen_before_and_after_the_command() {
    for line in ["-o json ps", "ps -o json", "budget list --output json"] {
        assert_eq!(parse(line).map(|cli| cli.output).ok(), Some(Some(Format::Json)), "{line}");
    }
    let server = parse("ps --server http://x").map(|cli| cli.flags().server);
    assert_eq!(server.ok(), Some(Some("http://x".to_owned())));
}

#[test]
fn mistakes_say_what_was_meant() {
    let error = |line: &str| match parse(line) {
        Ok(_) => panic!("berth {line} was read"),
        Err(error) => (error.kind(), error.to_string()),
    };
    let (_, text) = error("run -g 1 python train.py");
    assert!(text.contains("put a command after `--`"), "{text}");
    let (_, text) = error("run --gpus 1.5 -- true");
    assert!(text.contains("--gpus: found `1.5`, expected whole GPUs"), "{text}");
    assert!(text.contains("Usage: berth run [OPTIONS] -- COMMAND"), "{text}");
    let (_, text) = error("cost --by colour");
    assert!(text.contains("expected some of team, project"), "{text}");
    let (_, text) = error("logs 17 --since yesterday");
    assert!(text.contains("expected a time ago such as 2h"), "{text}");
    assert_eq!(error("sop 17").0, ErrorKind::InvalidSubcommand);
    assert_eq!(error("stop").0, ErrorKind::MissingRequiredArgument);
}

#[test]
fn a_mistake_in_front_of_a_job_is_told_from_the_jobs_own_exit_code() {
    let attached =
        |line: &str| is_attached(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>());
    for line in ["run --gpu 1 -- true", "-o json run --wat -- -d", "shell 17 --tsk 1 -- ls"] {
        assert!(attached(line), "{line}");
    }
    for line in ["run -d --gpu 1 -- true", "ps --wat", "shell --wat", "", "why run", "plan -- run"]
    {
        assert!(!attached(line), "{line}");
    }
}

#[test]
fn every_command_is_on_the_page_with_an_example() {
    let page = include_str!("../../../../docs/cli.md");
    for leaf in leaves(&Cli::command(), "") {
        assert!(
            page.contains(&format!("berth {leaf}")),
            "docs/cli.md says nothing of `berth {leaf}`"
        );
    }
}

#[test]
fn every_flag_of_berth_kube_is_on_its_page() {
    let page = include_str!("../../../../docs/operate/kubernetes/flags.md");
    let command = Cli::command();
    let kube = command.find_subcommand("kube").expect("it is a command");
    let flags = kube.get_arguments().filter_map(|flag| flag.get_long());
    let missing: Vec<&str> = flags
        .filter(|flag| *flag != "help")
        .filter(|flag| {
            let is_it = |end: &str| page.contains(&format!("`--{flag}{end}"));
            !is_it(" ") && !is_it("`")
        })
        .collect();
    assert_eq!(missing, [""; 0], "docs/operate/kubernetes/flags.md says nothing of these");
}

/// The Markdown files at the top of the repository and below `docs`, with their text.
fn pages() -> Vec<(PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let (mut found, mut folders) =
        (Vec::new(), vec![(root.clone(), false), (root.join("docs"), true)]);
    while let Some((folder, deeper)) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder of pages") {
            let path = entry.expect("an entry").path();
            if path.extension().is_some_and(|end| end == "md") {
                let text = std::fs::read_to_string(&path).expect("a page");
                found.push((path, text));
            } else if deeper && path.is_dir() {
                folders.push((path, true));
            }
        }
    }
    found
}

/// The words of a command as a shell reads them, as far as examples need it: with quotes, and up to
/// a comment, a pipe or another command.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None::<char>);
    for letter in line.chars() {
        match quote {
            Some(open) if open == letter => quote = None,
            Some(_) => word.get_or_insert_default().push(letter),
            None => match letter {
                '\'' | '"' => {
                    quote = Some(letter);
                    word = Some(word.unwrap_or_default());
                }
                ' ' => words.extend(word.take()),
                '#' if word.is_none() => break,
                '|' | ';' | '&' | '<' | '>' => break,
                _ => word.get_or_insert_default().push(letter),
            },
        }
    }
    words.extend(word);
    words
}

#[test]
fn every_example_on_every_page_is_a_command() {
    let (mut seen, mut wrong) = (0, Vec::new());
    for (path, page) in pages() {
        let page = page.replace("\\\n", " ");
        let blocks = page.split("```sh\n").skip(1).filter_map(|rest| rest.split("```").next());
        let lines = blocks.flat_map(str::lines).map(str::trim_start);
        for line in lines.filter(|line| line.starts_with("berth ")) {
            seen += 1;
            match Cli::try_parse_from(words(line)) {
                Err(error) if error.kind() != ErrorKind::DisplayHelp => {
                    wrong.push(format!("{}: {line}\n{error}", path.display()));
                }
                _ => {}
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(seen > 150, "{seen} examples");
}
