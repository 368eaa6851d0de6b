//! A load for a running server on a home with a history: jobs that run and print, and jobs that wait
//! for every kind of reason. They are submitted over the API, each with the token of its user.

use crate::TOKENS;
use anyhow::{Context, Result};
use berth_api::Client;
use berth_api::client::Options;
use berth_api::wire::SubmitQuery;
use std::collections::BTreeMap;
use std::path::Path;

const SCRIPT: &str = include_str!("../data/train.sh");

/// A job of the load.
struct Live {
    user: &'static str,
    /// All of its file but the command.
    keys: &'static str,
    /// It is paused as soon as it is there.
    paused: bool,
}

const fn live(user: &'static str, keys: &'static str) -> Live {
    Live { user, keys, paused: false }
}

const LOAD: &[Live] = &[
    live(
        "jonas",
        "name: llama-70b-sft-live\nteam: nlp\nproject: chat\nexperiment: sft-2026q4\nnodes: 2\n\
         gpus: H100:8\ntime: 24h\ncheckpoint: {path: ckpt, every: 30m, grace: 1m}\npriority: high\n\
         labels: {model: llama-70b}\n",
    ),
    live(
        "mateo",
        "name: sam2-finetune-live\nteam: vision\nproject: segmentation\nexperiment: sam2\n\
         gpus: H100:8\ntime: 12h\ncheckpoint: {path: ckpt, every: 30m, grace: 1m}\n",
    ),
    live(
        "kim",
        "name: video-mae-k600-live\nteam: vision\nproject: video\nexperiment: mae-pretrain\n\
         gpus: H100:8\ntime: 48h\n",
    ),
    live(
        "yuki",
        "name: vit-l-aug-live\nteam: vision\nproject: detection\nexperiment: vit-aug\ngpus: 4\n\
         time: 6h\npriority: low\ncomment: \"<script>alert(1)</script>\"\n",
    ),
    live(
        "amara",
        "name: asr-conformer-sweep-live\nteam: speech\nproject: asr\nexperiment: conformer-ctc\n\
         gpus: 1\ntime: 4h\narray: 0-11%4\n",
    ),
    live("priya", "name: tts-notebook-live\nteam: speech\nproject: tts\ngpus: 0.5\ntime: 8h\n"),
    live(
        "olivia",
        "name: vllm-load-live\nteam: platform\nproject: benchmarks\nexperiment: serving\ngpus: 2\n\
         time: 24h\npreemptible: false\n",
    ),
    live(
        "chen",
        "name: burn-in-live\nteam: platform\nproject: benchmarks\ngpus: 1\ntime: 1h\n\
         env: {FAIL_AT: 12}\n",
    ),
    live(
        "chen",
        "name: nccl-bench-live\nteam: platform\nproject: benchmarks\ngpus: 2\ntime: 1h\n\
         env: {STEPS: 40}\n",
    ),
    // From here on they wait: for room, for a budget, for another job, for a time, for a person.
    live(
        "noor",
        "name: moe-pretrain-live\nteam: nlp\nproject: pretraining\nexperiment: moe-scaling\n\
         nodes: 7\ngpus: H100:8\ntime: 72h\ncheckpoint: {path: ckpt, every: 30m, grace: 2m}\n",
    ),
    live("zoe", "name: gpt2-tiny-live\nteam: interns\ngpus: 1\ntime: 2h\npriority: low\n"),
    live(
        "jonas",
        "name: mmlu-eval-live\nteam: nlp\nproject: chat\nexperiment: sft-2026q4\ngpus: 1\n\
         time: 2h\nafter: [llama-70b-sft-live]\n",
    ),
    live(
        "yuki",
        "name: nightly-eval-live\nteam: vision\nproject: segmentation\ngpus: 1\ntime: 2h\n\
         begin: 6h\n",
    ),
    Live {
        user: "priya",
        keys: "name: whisper-distil-live\nteam: speech\nproject: asr\nexperiment: distillation\n\
               gpus: 2\ntime: 8h\ncheckpoint: {path: ckpt, every: 30m, grace: 1m}\n",
        paused: true,
    },
    live(
        "lena",
        "name: a-name-of-eighty-characters-bf16-seq8192-gbs1024-lr3e-4-warmup2000-cosine-live-x\n\
         team: vision\nproject: detection\nexperiment: detr-baselines\ngpus: 1\ntime: 3h\n\
         comment: تجربة ثانية مع معدل تعلم أقل\n",
    ),
];

/// Submits all of it; the numbers of the jobs.
pub async fn submit(home: &Path, url: Option<&str>) -> Result<Vec<String>> {
    let url = match url {
        Some(url) => url.to_owned(),
        None => announced(home)?,
    };
    let path = home.join(TOKENS);
    let text = std::fs::read_to_string(&path)
        .with_context(|| format!("reading {}; was a history written there?", path.display()))?;
    let tokens: BTreeMap<String, String> = serde_json::from_str(&text)?;
    let script: String = SCRIPT.lines().map(|line| format!("  {line}\n")).collect();
    let mut numbers = Vec::new();
    for Live { user, keys, paused } in LOAD {
        let token = tokens.get(*user).with_context(|| format!("{user} has no token"))?;
        let client = Client::new(Options::new(&url).token(token))?;
        let file = format!("{keys}run: |\n{script}");
        let submitted = client.submit(&file, &SubmitQuery::default()).await;
        let submitted = submitted.with_context(|| keys.lines().next().unwrap_or("").to_owned())?;
        let number = submitted.id.map(|id| id.0.to_string()).unwrap_or_default();
        if *paused {
            client.pause_job(&number).await?;
        }
        numbers.push(number);
    }
    Ok(numbers)
}

/// Where the server of the home says that it is.
fn announced(home: &Path) -> Result<String> {
    let path = home.join("server.json");
    let text = std::fs::read_to_string(&path)
        .with_context(|| format!("reading {}; does a server run there?", path.display()))?;
    let said: serde_json::Value = serde_json::from_str(&text)?;
    said["url"].as_str().map(str::to_owned).context("the server does not say where it is")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::people::{PEOPLE, submitters};

    #[test]
    fn everybody_who_submits_is_there_and_may() {
        for Live { user, keys, .. } in LOAD {
            let team = keys.lines().find_map(|line| line.strip_prefix("team: ")).unwrap();
            let leads = PEOPLE.iter().any(|person| {
                person.name == *user && person.teams.iter().any(|(of, _)| *of == "research")
            });
            assert!(leads || submitters(team).contains(user), "{user} in {team}");
        }
    }
}
