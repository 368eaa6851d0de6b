//! What people call their jobs, and what the jobs run.

use berth_sim::random::Rng;

/// A kind of work that a team does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Work {
    /// The beginning of the names of its jobs.
    pub stem: &'static str,
    pub project: &'static str,
    pub experiment: &'static str,
    pub command: &'static str,
}

const fn work(
    stem: &'static str,
    project: &'static str,
    experiment: &'static str,
    command: &'static str,
) -> Work {
    Work { stem, project, experiment, command }
}

const VISION: &[Work] = &[
    work("vit-l-aug", "detection", "vit-aug", "python train.py --model vit_l --aug strong"),
    work("sam2-finetune", "segmentation", "sam2", "torchrun finetune.py --config sam2_l.yaml"),
    work("detr-r101", "detection", "detr-baselines", "python main.py --backbone resnet101"),
    work("video-mae-k600", "video", "mae-pretrain", "torchrun pretrain.py --data k600"),
    work("convnext-sweep", "detection", "convnext-lr", "python train.py --lr $lr"),
    work("cityscapes-eval", "segmentation", "sam2", "python eval.py --split val"),
];
const NLP: &[Work] = &[
    work("llama-70b-sft", "chat", "sft-2026q4", "torchrun -m titan.train --config llama3_70b.toml"),
    work("llama-8b-dpo", "chat", "dpo-beta", "accelerate launch dpo.py --beta 0.1"),
    work("moe-pretrain", "pretraining", "moe-scaling", "torchrun pretrain.py --experts 64"),
    work("tokenizer-ablation", "pretraining", "tokenizers", "python train_lm.py --vocab 64k"),
    work("retriever-e5", "retrieval", "e5-hard-negatives", "python train_retriever.py"),
    work("mmlu-eval", "chat", "sft-2026q4", "python -m lm_eval --tasks mmlu"),
];
const SPEECH: &[Work] = &[
    work("asr-conformer", "asr", "conformer-ctc", "python train_asr.py --arch conformer"),
    work("whisper-distil", "asr", "distillation", "accelerate launch distil.py --layers 2"),
    work("tts-flow", "tts", "flow-matching", "python train_tts.py --decoder flow"),
    work("vad-tune", "asr", "vad", "python tune_vad.py"),
];
const PLATFORM: &[Work] = &[
    work("nccl-bench", "benchmarks", "fabric", "./all_reduce_perf -b 8 -e 8G -f 2"),
    work("vllm-load", "benchmarks", "serving", "python bench_serving.py --rate 40"),
    work("burn-in", "benchmarks", "acceptance", "./gpu_burn 600"),
];
const INTERNS: &[Work] = &[
    work("mnist-hello", "default", "first-steps", "python mnist.py"),
    work("gpt2-tiny", "default", "first-steps", "python train_gpt2.py --layers 4"),
];

/// The team of each part of a trace, in their order.
pub const TEAMS: &[&str] = &["nlp", "vision", "speech", "platform", "interns"];

fn of(team: &str) -> &'static [Work] {
    match team {
        "vision" => VISION,
        "nlp" => NLP,
        "speech" => SPEECH,
        "platform" => PLATFORM,
        _ => INTERNS,
    }
}

/// What a job of a team does. Larger ones are rather the first kinds.
pub fn pick(team: &str, rng: &mut Rng) -> Work {
    rng.one_of(of(team))
}

/// Names are numbered, as people do; a few say everything that there is to say.
pub fn name(work: Work, number: u64, rng: &mut Rng) -> String {
    if rng.below(80) > 0 {
        return format!("{}-{number}", work.stem);
    }
    let long = format!(
        "{}-bf16-seq8192-gbs1024-lr3e-4-warmup2000-cosine-wd0.1-clip1.0-seed{number}-resume-of-previous",
        work.stem
    );
    long.chars().take(LONG).collect()
}

/// As long as a name has to fit into a table.
const LONG: usize = 80;

/// Remarks as people make them, and as people who mean harm do: they stay text.
pub const COMMENTS: &[&str] = &[
    "second try with the fixed data loader",
    "baseline for the review on Friday",
    "<script>alert(1)</script>",
    "تجربة ثانية مع معدل تعلم أقل",
    "ניסוי חדש של הצוות",
    "\"><img src=x onerror=alert(1)>",
    "学習率を下げて再実行 🚀",
    "'; DROP TABLE jobs; --",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_at_most_eighty_characters_and_some_have_all_of_them() {
        let mut rng = Rng::new(3);
        let lengths: Vec<usize> = (0..2_000)
            .map(|number| {
                let team = rng.one_of(TEAMS);
                let work = pick(team, &mut rng);
                name(work, number, &mut rng).len()
            })
            .collect();
        assert_eq!(lengths.iter().max(), Some(&LONG));
        assert!(lengths.iter().min().is_some_and(|shortest| *shortest < 16));
    }
}
