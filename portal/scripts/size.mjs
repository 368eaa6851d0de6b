/*
 * Fails when the portal has grown too large. Sizes are gzipped, in KB of 1,000 bytes.
 *
 *   first route     what is loaded before Home can be used: at most 220 of JS and 25 of CSS
 *   each other page its chunk with what it imports, less what the first route has: at most 60
 *   on demand       what a page or the frame imports when it is needed, such as the terminal and the
 *                   editor, each with its closure less what is there by then: at most 120. They do
 *                   not count for the page
 *   everything      at most 700
 */
import { readFileSync, writeFileSync } from "node:fs";
import { gzipSync } from "node:zlib";

const LIMITS = { first: 220, css: 25, page: 60, demand: 120, all: 700 };
const dist = new URL("../dist/", import.meta.url);
const manifest = JSON.parse(readFileSync(new URL(".vite/manifest.json", dist), "utf8"));

const sizes = new Map();
function gz(file) {
  if (!sizes.has(file))
    sizes.set(file, gzipSync(readFileSync(new URL(file, dist)), { level: 9 }).length);
  return sizes.get(file);
}
function closure(key, seen = new Set()) {
  if (seen.has(key)) return seen;
  seen.add(key);
  for (const next of manifest[key].imports ?? []) closure(next, seen);
  return seen;
}
const kb = (bytes) => (bytes / 1000).toFixed(1).padStart(7);
const sum = (keys) => [...keys].reduce((n, k) => n + gz(manifest[k].file), 0);

const entry = Object.keys(manifest).find((k) => manifest[k].isEntry);
// The table of runs is a page beside the list of experiments.
const isPage = (k) =>
  /^src\/pages\/[^/]+\/index\.tsx$/.test(k) || k === "src/pages/experiments/runs.tsx";
const home = "src/pages/home/index.tsx";
const first = closure(entry);
if (manifest[home]) closure(home, first);
const css = new Set([...first].flatMap((k) => manifest[k].css ?? []));

let failed = false;
const found = [];
function line(what, bytes, limit) {
  found.push({ name: what, kb: Math.round(bytes / 100) / 10, most: limit });
  const over = bytes > limit * 1000;
  failed ||= over;
  console.log(
    `${kb(bytes)} KB of ${String(limit).padStart(3)}  ${what}${over ? "  TOO LARGE" : ""}`,
  );
}

line("first route, JS", sum(first), LIMITS.first);
line(
  "first route, CSS",
  [...css].reduce((n, f) => n + gz(f), 0),
  LIMITS.css,
);
/** What is there already when a chunk is asked for: the first route, and whatever page asks for it. */
function before(key) {
  const askers = Object.keys(manifest).filter((k) => manifest[k].dynamicImports?.includes(key));
  const sets = isPage(key) ? [] : askers.map((a) => closure(a));
  const always = sets.length > 0 ? [...sets[0]].filter((k) => sets.every((s) => s.has(k))) : [];
  return new Set([...first, ...always]);
}

for (const key of Object.keys(manifest)) {
  if (!manifest[key].isDynamicEntry || first.has(key)) continue;
  const there = before(key);
  const own = [...closure(key)].filter((k) => !there.has(k));
  line(key, sum(own), isPage(key) ? LIMITS.page : LIMITS.demand);
}
const js = Object.keys(manifest).filter((k) => manifest[k].file.endsWith(".js"));
line("everything, JS", sum(new Set(js)), LIMITS.all);
// For `make evidence-portal`. The server serves what lies under assets, and this does not.
writeFileSync(new URL("../node_modules/.sizes.json", import.meta.url), JSON.stringify(found));
if (failed) {
  console.error("The portal is larger than scripts/size.mjs allows.");
  process.exit(1);
}
