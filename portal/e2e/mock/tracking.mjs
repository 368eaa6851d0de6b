/*
 * MLflow's routes: an experiment with RUNS runs (10,000), one with a few, and one without. Filters know
 * `metrics.KEY < NUMBER`, `run_id IN (…)`, `run_id = …`, `run_name ILIKE '%…%'`, `status = …` and
 * `start_time > …`, joined by AND; anything else is refused with its place, as the server does it.
 */
export function makeTracking({ runs: n = 10_000, empty = false } = {}) {
  let s = 11;
  const rnd = () => {
    s = (s * 1664525 + 1013904223) >>> 0;
    return s / 2 ** 32;
  };
  const pick = (list) => list[Math.floor(rnd() * list.length)];
  const now = Date.now();
  const experiment = (id, name, team = "nlp") => ({
    experiment_id: String(id),
    name,
    artifact_location: `mlflow-artifacts:/${team}/${id}`,
    lifecycle_stage: "active",
    creation_time: now - 30 * 86_400_000 + id * 1000,
    last_update_time: now - 86_400_000,
    tags: id === 1 ? [{ key: "mlflow.note.content", value: "Which rate and size, and why" }] : [],
  });
  const experiments = empty
    ? []
    : [
        experiment(1, "llama-sweep"),
        experiment(2, "digits"),
        experiment(3, "nothing-yet"),
        experiment(4, "detectors", "vision"),
      ];
  const runs = [];
  const make = (of, i) => {
    const team = of === 4 ? "vision" : "nlp";
    const id = `${of}${i.toString(16).padStart(7, "0")}`.padEnd(32, "ab");
    const lr = [1e-5, 3e-5, 1e-4, 3e-4, 1e-3][Math.floor(rnd() * 5)];
    const layers = pick([12, 24, 32, 48]);
    const loss = 1.2 + Math.abs(Math.log10(lr) + 3.6) * 0.4 - layers * 0.006 + rnd() * 0.3;
    const hours = layers * (0.4 + rnd());
    const start = now - (i + 1) * 240_000;
    const open = i < 3 && of === 1;
    const broken = !open && rnd() < 0.04;
    const latest = { step: 1000, timestamp: start + hours * 60_000 };
    const metric = (key, value) => ({ key, value, ...latest });
    return {
      info: {
        run_id: id,
        run_name: `${pick(["amber", "swift", "calm", "keen"])}-${pick(["keel", "mast", "quay"])}-${i}`,
        experiment_id: String(of),
        user_id: pick(["kim", "lee", "ada"]),
        status: open ? "RUNNING" : broken ? "FAILED" : "FINISHED",
        lifecycle_stage: "active",
        artifact_uri: `mlflow-artifacts:/${team}/${of}/${id}/artifacts`,
        start_time: start,
        ...(!open && { end_time: start + Math.round(hours * 60_000) }),
      },
      data: {
        metrics: [
          metric("loss", broken ? "NaN" : loss),
          metric("acc", broken ? 0 : 1 - loss / 4),
          metric("val loss", loss * 1.1),
          metric("berth.cost", hours * 2.49 * 8),
          metric("berth.gpu_hours", hours * 8),
          metric("berth.gpu_use", 0.5 + rnd() / 2),
        ],
        params: [
          { key: "lr", value: String(lr) },
          { key: "layers", value: String(layers) },
          { key: "optimizer", value: pick(["adamw", "lion", "sgd"]) },
          { key: "seed", value: String(i % 5) },
        ],
        tags: [
          { key: "berth.job", value: String(4800 - (i % 400)) },
          { key: "berth.gpus", value: "8xH100" },
          { key: "mlflow.source.name", value: "python train.py --config llama.yaml" },
          { key: "mlflow.source.git.commit", value: "9f".repeat(20) },
          { key: "task", value: pick(["pretrain", "finetune"]) },
        ],
      },
      inputs: {
        dataset_inputs: [
          {
            tags: [{ key: "mlflow.data.context", value: "data" }],
            dataset: {
              name: "c4@v3",
              digest: "8f14e45fceea167a5a36dedd4bea2543",
              source_type: "berth",
              source: '{"path":"/data","data":"dvc:c4@v3"}',
            },
          },
        ],
        model_inputs: [],
      },
      outputs: { model_outputs: i % 3 === 0 ? [{ model_id: `m-${id}`, step: 1000 }] : [] },
    };
  };
  if (!empty) {
    for (let i = 0; i < n; i += 1) runs.push(make(1, i));
    for (let i = 0; i < 12; i += 1) runs.push(make(2, i));
    for (let i = 0; i < 40; i += 1) runs.push(make(4, i));
  }
  return { experiments, runs, byId: new Map(runs.map((r) => [r.info.run_id, r])), n: n };
}

const refuse = (status, code, message) => ({
  status,
  body: { error_code: code, message },
});
const gone = (what) => refuse(404, "RESOURCE_DOES_NOT_EXIST", what);

function clauses(text) {
  const out = [];
  let at = 1;
  for (const part of text.split(/ AND /i)) {
    const lead = part.length - part.trimStart().length;
    const metric = /^\s*metrics\.(?:`([^`]+)`|([\w.]+))\s*(<|>|=)\s*(-?[\d.e-]+)\s*$/i.exec(part);
    const ids = /^\s*run_id (?:IN \((.*)\)|= ('.*'))\s*$/.exec(part);
    const name = /^\s*(?:attributes\.)?run_name ILIKE '%(.*)%'\s*$/.exec(part);
    const status = /^\s*status = '(\w+)'\s*$/.exec(part);
    const since = /^\s*start_time > (\d+)\s*$/.exec(part);
    if (metric) {
      const [, quoted, plain, op, value] = metric;
      const of = (r) => r.data.metrics.find((m) => m.key === (quoted ?? plain))?.value;
      out.push((r) =>
        op === "<" ? of(r) < +value : op === ">" ? of(r) > +value : of(r) === +value,
      );
    } else if (ids) {
      const all = new Set([...(ids[1] ?? ids[2]).matchAll(/'([^']*)'/g)].map((m) => m[1]));
      out.push((r) => all.has(r.info.run_id));
    } else if (name) out.push((r) => r.info.run_name.toLowerCase().includes(name[1].toLowerCase()));
    else if (status) out.push((r) => r.info.status === status[1]);
    else if (since) out.push((r) => r.info.start_time > +since[1]);
    else return { wrong: at + lead };
    at += part.length + 5;
  }
  return { all: out };
}

function search(world, body) {
  const filter = body.filter ?? "";
  let found = world.runs.filter(
    (r) =>
      body.experiment_ids.includes(r.info.experiment_id) &&
      (body.run_view_type === "DELETED_ONLY") === (r.info.lifecycle_stage === "deleted"),
  );
  if (filter !== "") {
    const { all, wrong } = clauses(filter);
    if (wrong !== undefined)
      return refuse(
        400,
        "INVALID_PARAMETER_VALUE",
        `Invalid clause(s) in filter string '${filter}': expected an identifier such as metrics.loss, params.lr or tags.team at character ${wrong}, found '${filter.slice(wrong - 1).split(" ")[0]}'`,
      );
    found = found.filter((r) => all.every((one) => one(r)));
  }
  const from = Number(body.page_token || 0);
  const to = from + (body.max_results ?? 1000);
  return { runs: found.slice(from, to), ...(to < found.length && { next_page_token: String(to) }) };
}

/** A curve that ends at the newest value, with noise that is the same each time. */
function history(run, key, most) {
  const last = run.data.metrics.find((m) => m.key === key);
  if (!last) return [];
  if (key.startsWith("berth.")) return [{ ...last, run_id: run.info.run_id }];
  const points = Math.min(most, 400);
  const value = last.value === "NaN" ? 3 : last.value;
  let s = Number.parseInt(run.info.run_id.slice(0, 8), 16);
  return Array.from({ length: points }, (_, i) => {
    s = (s * 1664525 + 1013904223) >>> 0;
    const part = (i + 1) / points;
    const noise = (s / 2 ** 32 - 0.5) * 0.2;
    const at = key === "acc" ? value * (1 - Math.exp(-4 * part)) : value + 3 * Math.exp(-5 * part);
    return {
      key,
      value: i === points - 1 ? last.value : at + noise * (1.2 - part),
      step: Math.round(part * 1000),
      timestamp: Math.round(
        run.info.start_time + part * ((run.info.end_time ?? Date.now()) - run.info.start_time),
      ),
      run_id: run.info.run_id,
    };
  });
}

const FILES = {
  "": [
    ["plots", true],
    ["model", true],
    ["berth", true],
    ["metrics.json", false, 31],
    ["train.log", false, 48],
  ],
  plots: [["loss.svg", false, 300]],
  model: [
    ["MLmodel", false, 60],
    ["weights.safetensors", false, 2_400_000_000],
  ],
  berth: [["job.yaml", false, 40]],
};
const CONTENT = {
  "metrics.json": '{"loss":1.25,"acc":0.69,"n":1}\n',
  "train.log": "step 1 loss 4.2\nstep 1000 loss 1.25\n",
  "plots/loss.svg":
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 300 120"><path d="M0 10 C60 90 120 100 300 110" fill="none" stroke="teal" stroke-width="3"/></svg>',
  "model/MLmodel": "flavors:\n  pytorch: {}\n",
  "berth/job.yaml": "name: llama\ngpus: 8xH100\nrun: python train.py\n",
};

/** Every third run is as it was, every third may differ, and the data of every third has changed. */
function recipe({ info, data }) {
  const team = info.artifact_uri.split("/")[1];
  const kind = Number.parseInt(info.run_id.slice(1, 8), 16) % 3;
  const hash = "8f14e45fceea167a5a36dedd4bea2543.dir";
  const now = "0cc175b9c0f1b6a831c399e269772661.dir";
  const changed = {
    what: "data c4@v3",
    // biome-ignore lint/suspicious/noThenProperty: it is a field of the API, and not a promise
    then: hash,
    now,
    next: "push the content that the run had under a new name, and name that in `data`",
    blocks: true,
  };
  const price = {
    what: "price",
    // biome-ignore lint/suspicious/noThenProperty: it is a field of the API, and not a promise
    then: "$19.92 an hour",
    now: "$21.10 an hour",
    next: "`berth plan` says what the new job would cost",
    blocks: false,
  };
  return {
    run: info.run_id,
    job: data.tags.find((t) => t.key === "berth.job")?.value ?? null,
    team,
    source: "job",
    file: `name: llama\nteam: ${team}\ngpus: H100:8\ntime: 6h\ncode: sha256:${"5e".repeat(32)}\ndata: {/data: 'dvc:c4@v3#${hash}'}\nrun: python train.py --config llama.yaml\n`,
    job_file: {},
    code: {
      snapshot: `sha256:${"5e".repeat(32)}`,
      commit: "9f".repeat(20),
      dirty: true,
      kept: true,
    },
    image: "nvcr.io/nvidia/pytorch:24.05-py3",
    data: [{ path: "/data", version: "c4@v3", hash, now: kind === 2 ? now : hash }],
    differs: kind === 0 ? [] : kind === 1 ? [price] : [changed, price],
  };
}

/** Routes as server.mjs has them. */
export function trackingRoutes(world, { raw }) {
  const at = (path) => new RegExp(`^/ajax-api/2\\.0/mlflow/${path}$`);
  const change = (path, act) => [
    "POST",
    at(path),
    (_, __, body) => {
      const run = world.byId.get(body.run_id);
      if (!run) return gone(`Run with id=${body.run_id} not found`);
      act(run, body);
      return {};
    },
  ];
  return [
    [
      "POST",
      at("experiments/search"),
      (_, __, body, req) => ({
        experiments: world.experiments.filter(
          (e) =>
            e.artifact_location.includes(`:/${req.headers["x-berth-team"] ?? "nlp"}/`) &&
            (body.view_type === "DELETED_ONLY") === (e.lifecycle_stage === "deleted"),
        ),
      }),
    ],
    [
      "GET",
      at("experiments/get"),
      (q) => {
        const id = q.get("experiment_id");
        const found = world.experiments.find((e) => e.experiment_id === id);
        return found ? { experiment: found } : gone(`No Experiment with id=${id} exists`);
      },
    ],
    ["POST", at("runs/search"), (_, __, body) => search(world, body)],
    [
      "GET",
      at("runs/get"),
      (q) => {
        const run = world.byId.get(q.get("run_id"));
        return run ? { run } : gone(`Run with id=${q.get("run_id")} not found`);
      },
    ],
    [
      "GET",
      at("metrics/get-history-bulk-interval"),
      (q) => ({
        metrics: q
          .getAll("run_ids")
          .flatMap((id) =>
            history(
              world.byId.get(id) ?? world.runs[0],
              q.get("metric_key"),
              Number(q.get("max_results")),
            ),
          ),
      }),
    ],
    change("runs/update", (run, body) => {
      run.info.run_name = body.run_name;
    }),
    change("runs/delete", (run) => {
      run.info.lifecycle_stage = "deleted";
    }),
    change("runs/restore", (run) => {
      run.info.lifecycle_stage = "active";
    }),
    change("runs/set-tag", (run, { key, value }) => {
      run.data.tags = [...run.data.tags.filter((t) => t.key !== key), { key, value }];
    }),
    change("runs/delete-tag", (run, { key }) => {
      run.data.tags = run.data.tags.filter((t) => t.key !== key);
    }),
    ["POST", at("experiments/(?:update|delete|restore)"), () => ({})],
    [
      "GET",
      /^\/v1\/runs\/([^/]+)\/recipe$/,
      (_, match) => {
        const id = decodeURIComponent(match[1]).replace("run:", "");
        const run = world.byId.get(id);
        if (!run) return gone(`There is no run ${id}`);
        return recipe(run);
      },
    ],
    [
      "GET",
      /^\/ajax-api\/2\.0\/mlflow-artifacts\/artifacts$/,
      (q) => {
        const folder = (q.get("path") ?? "").split("/artifacts").at(-1).replace(/^\//, "");
        return {
          files: (FILES[folder] ?? []).map(([path, is_dir, file_size]) => ({
            path,
            is_dir,
            ...(file_size && { file_size }),
          })),
        };
      },
    ],
    [
      "GET",
      /^\/ajax-api\/2\.0\/mlflow-artifacts\/artifacts\/(.+)$/,
      (_, match) =>
        raw(
          CONTENT[decodeURIComponent(match[1]).split("/artifacts/").at(-1)] ?? "",
          "application/octet-stream",
        ),
    ],
  ];
}
