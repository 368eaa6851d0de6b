/*
 * Registered models, prompts, versions of data, and a lineage of whatever is asked about. Changes are kept
 * until the end; rights are not looked at.
 */
const pair = ([key, value]) => ({ key, value });
const pairs = (of) => Object.entries(of).map(pair);

export function makeModels({ runs, empty = false }) {
  const now = Date.now();
  const models = new Map();
  const add = (name, { tags = {}, description, versions = 0, text } = {}) => {
    const made = now - models.size * 86_400_000;
    const model = {
      name,
      creation_timestamp: made,
      last_updated_timestamp: made + 3_600_000,
      user_id: "kim",
      ...(description && { description }),
      tags: pairs(tags),
      aliases: versions > 1 ? [{ alias: "champion", version: String(versions - 1) }] : [],
    };
    const all = Array.from({ length: versions }, (_, i) => ({
      name,
      version: String(i + 1),
      creation_timestamp: made + i * 600_000,
      last_updated_timestamp: made + i * 600_000,
      user_id: ["kim", "ada"][i % 2],
      current_stage: i === versions - 2 ? "Production" : "None",
      source: `runs:/${runs[i % runs.length]?.info.run_id}/model`,
      status: "READY",
      ...(!text && { run_id: runs[i % runs.length]?.info.run_id }),
      tags: text ? pairs({ "mlflow.prompt.text": `${text}\nVersion ${i + 1}.` }) : [],
    }));
    models.set(name, { model, versions: all });
  };
  if (!empty) {
    add("chat", {
      tags: { task: "qa", owner: "nlp" },
      description: "Answers questions.\n<b>Text</b> stays text.",
      versions: 12,
    });
    add("a-model-whose-name-is-eighty-characters-long-so-that-somebody-has-to-cut-it-here", {
      versions: 1,
    });
    add("تدريب-النموذج", { versions: 2 });
    add("no-versions");
    // Team speech shares it with the team of the user.
    add("speech/whisper", { description: "Writes down what people say.", versions: 3 });
    add("answer", {
      tags: { "mlflow.prompt.is_prompt": "true" },
      versions: 3,
      text: "Answer {{question}} in one line.",
    });
  }
  const data = empty
    ? []
    : [1, 2, 3].map((version) => ({
        team: "nlp",
        name: "c4",
        version,
        hash: `${version}a1b2c3d4e5f60718293a4b5c6d7e8f9.dir`,
        bytes: version * 1e9,
        files: version * 20,
        parent: version > 1 ? version - 1 : null,
        created: new Date(now - version * 3.6e6).toISOString(),
        by: "kim",
        note: version === 1 ? "raw" : "",
      }));
  return { models, data, shares: new Map(empty ? [] : [["nlp/chat", ["vision"]]]) };
}

const gone = (message) => ({
  status: 404,
  body: { error_code: "RESOURCE_DOES_NOT_EXIST", message },
});

/** The teams that may read a model, before or after a change. */
function sharesOf(world, change) {
  const path = "^/v1/models/([^/]+)/([^/]+)/shares";
  return [
    new RegExp(change ? `${path}/([^/]+)$` : `${path}$`),
    (_, match) => {
      const [team, name, other] = match.slice(1).map(decodeURIComponent);
      const key = `${team}/${name}`;
      let teams = world.shares.get(key) ?? [];
      if (change) teams = teams.filter((one) => one !== other);
      if (change === "PUT") teams.push(other);
      world.shares.set(key, teams);
      return { teams };
    },
  ];
}

export function modelRoutes(world) {
  const at = (path) => new RegExp(`^/ajax-api/2\\.0/mlflow/${path}$`);
  const named = (version, model) => ({
    ...version,
    aliases: model.aliases.filter((a) => a.version === version.version).map((a) => a.alias),
  });
  const shown = ({ model, versions }) => {
    const newest = new Map();
    for (const v of versions) newest.set(v.current_stage, named(v, model));
    return { ...model, latest_versions: [...newest.values()] };
  };
  const isPrompt = ({ model }) => model.tags.some((t) => t.key === "mlflow.prompt.is_prompt");
  const change = (method, path, act) => [
    method,
    at(path),
    (_, __, body) => {
      const found = world.models.get(body.name);
      if (!found) return gone(`Registered Model with name=${body.name} not found`);
      act(found, body, body.version && found.versions.find((v) => v.version === body.version));
      return {};
    },
  ];
  const tag = (of, { key, value }) => {
    of.tags = of.tags.filter((t) => t.key !== key);
    if (value !== undefined) of.tags.push({ key, value });
  };
  return [
    [
      "GET",
      at("registered-models/search"),
      (q) => {
        const prompts = q.get("filter")?.includes("is_prompt") ?? false;
        const found = [...world.models.values()].filter((m) => isPrompt(m) === prompts);
        return { registered_models: found.map(shown) };
      },
    ],
    [
      "GET",
      at("registered-models/get"),
      (q) => {
        const found = world.models.get(q.get("name"));
        if (!found) return gone(`Registered Model with name=${q.get("name")} not found`);
        return { registered_model: shown(found) };
      },
    ],
    [
      "GET",
      at("model-versions/search"),
      (q) => {
        const name = /^name = ['"](.*)['"]$/.exec(q.get("filter") ?? "")?.[1];
        const found = world.models.get(name);
        return { model_versions: found?.versions.map((v) => named(v, found.model)) ?? [] };
      },
    ],
    change("PATCH", "registered-models/update", ({ model }, body) => {
      model.description = body.description;
    }),
    change("PATCH", "model-versions/update", (_, body, version) => {
      version.description = body.description;
    }),
    change("POST", "registered-models/set-tag", ({ model }, body) => tag(model, body)),
    change("DELETE", "registered-models/delete-tag", ({ model }, { key }) => tag(model, { key })),
    change("POST", "model-versions/set-tag", (_, body, version) => tag(version, body)),
    change("DELETE", "model-versions/delete-tag", (_, { key }, version) => tag(version, { key })),
    change("POST", "registered-models/alias", ({ model }, { alias, version }) => {
      model.aliases = [...model.aliases.filter((a) => a.alias !== alias), { alias, version }];
    }),
    change("DELETE", "registered-models/alias", ({ model }, { alias }) => {
      model.aliases = model.aliases.filter((a) => a.alias !== alias);
    }),
    change("POST", "model-versions/transition-stage", (_, { stage }, version) => {
      version.current_stage = stage;
    }),
    change("DELETE", "registered-models/delete", ({ model }) => world.models.delete(model.name)),
    change("DELETE", "model-versions/delete", (found, _, version) => {
      found.versions = found.versions.filter((v) => v !== version);
    }),
    ["GET", ...sharesOf(world)],
    ["PUT", ...sharesOf(world, "PUT")],
    ["DELETE", ...sharesOf(world, "DELETE")],
    ["GET", /^\/v1\/data$/, () => ({ items: world.data })],
    [
      "GET",
      /^\/v1\/data\/[^/]+\/[^/]+\/diff$/,
      () => ({
        from: world.data[0],
        to: world.data[1],
        added: { files: 20, bytes: 1e9, paths: [] },
        removed: { files: 0, bytes: 0, paths: [] },
        changed: { files: 2, bytes: 5e6, paths: [] },
      }),
    ],
    ["GET", /^\/v1\/lineage$/, (q) => lineage(q.get("of"))],
  ];
}

function lineage(of) {
  const node = (id, details = {}, more = {}) => ({
    id,
    kind: id.slice(0, id.indexOf(":")),
    name: id.slice(id.indexOf(":") + 1),
    team: "nlp",
    label: id.slice(id.indexOf(":") + 1),
    details,
    ...more,
  });
  const edges = [
    [of, "logged_model:m-0a1b2c", "registered_from"],
    ["logged_model:m-0a1b2c", "run:10000000abababababababababababab", "logged_by"],
    ["run:10000000abababababababababababab", "job:4800", "run_of"],
    ["run:10000000abababababababababababab", "data:c4@v3", "read"],
    ["run:10000000abababababababababababab", "code:0a1b", "with_code"],
    ["run:10000000abababababababababababab", "image:registry/train:11", "in_image"],
    ["data:c4@v3", "data:c4@v2", "derived_from"],
    ["data:c4@v2", "data:c4@v1", "derived_from"],
    ["run:eval", of, "read_model"],
    ["run:eval", "hidden:1", "read"],
    ["model:chat-small@1", "run:eval", "registered_from"],
  ];
  return {
    of,
    nodes: [
      node(of, { aliases: ["champion"], by: "kim" }),
      node("logged_model:m-0a1b2c"),
      node("run:10000000abababababababababababab", { status: "FINISHED" }, { label: "run amber" }),
      node("job:4800", { cost_micros: 37_500_000, gpu_ms: 3.6e7, status: "done" }),
      node("data:c4@v3", { bytes: 3e9, files: 60 }),
      node("data:c4@v2", { bytes: 2e9, files: 40 }),
      node("data:c4@v1", {}, { gone: true, label: "c4@v1 (removed)" }),
      node("code:0a1b", { commit: "0a1b2c3d4e5f", dirty: true }),
      node("image:registry/train:11"),
      node("run:eval", { status: "RUNNING" }, { label: "run eval" }),
      node("hidden:1", {}, { kind: "data", hidden: true, name: "", team: "", label: "" }),
      node("model:chat-small@1"),
    ],
    edges: edges.map(([from, to, kind]) => ({ from, to, kind })),
    cost_micros: 37_500_000,
    gpu_ms: 3.6e7,
    more: false,
  };
}
