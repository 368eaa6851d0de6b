// What a team has tracked after some weeks: a sweep with curves, a model with versions, prompts.
import type { Tracked } from "./pages";
import type { Client } from "./server";
import {
  finishRun,
  logBatch,
  logRun,
  putArtifact,
  registerModel,
  registerPrompt,
  setAlias,
  setStage,
} from "./tracking";

const STEPS = 80;
const LONG_NAME =
  "bf16-seq8192-gbs1024-lr3e-4-warmup2000-cosine-a-name-of-eighty-characters-in-all";
const NAMES = ["amber-keel", "swift-mast", "calm-quay", "keen-buoy", "تجربة ثانية", LONG_NAME];
const RATES = ["0.00001", "0.00003", "0.0001", "0.0003", "0.001"];
const LAYERS = ["12", "24", "48"];

/** Noise between -0.5 and 0.5 that is the same in each run of the tests. */
function noise(seed: number): () => number {
  let state = seed * 2654435761;
  return () => {
    state = (state * 1664525 + 1013904223) >>> 0;
    return state / 2 ** 32 - 0.5;
  };
}

/** The metrics of one run: a loss that falls with noise, an accuracy that rises, and the cost. */
function curves(seed: number, final: number): Record<string, number[]> {
  const random = noise(seed);
  const steps = Array.from({ length: STEPS }, (_, i) => (i + 1) / STEPS);
  const loss = steps.map((part) => final + 2.5 * Math.exp(-5 * part) + random() * 0.15);
  return {
    loss,
    val_loss: loss.map((value) => value * 1.08 + random() * 0.05),
    accuracy: loss.map((value) => Math.max(0, 0.98 - value / 4)),
  };
}

const params = (i: number) => ({
  learning_rate: RATES[i % RATES.length] as string,
  layers: LAYERS[i % LAYERS.length] as string,
  optimizer: i % 2 === 0 ? "adamw" : "lion",
  batch_size: "1024",
});

const PLOT =
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 300 120"><path d="M0 10 C60 90 120 100 300 110" fill="none" stroke="teal" stroke-width="3"/></svg>';

/**
 * Adds metrics and artifacts to the run of a job, and logs other runs in its experiment. Version 2 of the
 * model is from the run of the job.
 */
export async function tellStory(client: Client, run: string, token?: string): Promise<Tracked> {
  const get = `/api/2.0/mlflow/runs/get?run_id=${run}`;
  const experiment = (await client.api("GET", get, undefined, token)).body.run.info.experiment_id;
  const runs = await Promise.all(
    Array.from({ length: 14 }, (_, i) => {
      const hours = 4 + (i % 5) * 3.5;
      return logRun(
        client,
        experiment,
        {
          name: NAMES[i] ?? `${NAMES[i % 4]}-${i}`,
          params: params(i),
          tags: { task: i % 3 === 0 ? "pretrain" : "finetune" },
          metrics: {
            ...curves(i + 1, 0.6 + (i % 5) * 0.22),
            "berth.cost": [hours * 8 * 2.49],
            "berth.gpu_hours": [hours * 8],
            "berth.gpu_use": [0.62 + (i % 4) * 0.09],
          },
          finish: false,
        },
        token,
      );
    }),
  );
  // The first one still runs, and one has failed.
  for (const [i, id] of runs.entries())
    if (i > 0) await finishRun(client, id, token, i === 7 ? "FAILED" : "FINISHED");

  await logBatch(client, run, { params: params(3), metrics: curves(99, 0.5) }, token);
  await putArtifact(client, run, "metrics.json", '{"loss":0.52,"accuracy":0.85}\n', token);
  await putArtifact(client, run, "plots/loss.svg", PLOT, token);
  await putArtifact(client, run, "model/MLmodel", "flavors:\n  pytorch: {}\n", token);

  const [, first, , third] = runs as string[];
  await registerModel(client, "chat", [first as string, run, third as string], token);
  await setAlias(client, "chat", "champion", "2", token);
  await setStage(client, "chat", "1", "Archived", token);
  await setStage(client, "chat", "2", "Production", token);
  await registerPrompt(
    client,
    "answer",
    ["Answer {{question}}.", "Answer {{question}}.\nBe brief, and name the sources."],
    token,
  );
  return { experiment, runs: [run, first as string, third as string], model: "chat" };
}
