// How long canvases take to draw, and searches to find.
import { execFileSync } from "node:child_process";
import { createReadStream, existsSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { extname, join, resolve } from "node:path";
import type { Browser } from "playwright-core";
import { below, exactly, figure, type Row, type Section } from "../support/report";

const ROOT = resolve(import.meta.dirname, "../..");
const BUILT = join(ROOT, "node_modules/.bench");
const TYPES: Record<string, string> = {
  ".html": "text/html",
  ".js": "text/javascript",
  ".css": "text/css",
};

interface Times {
  least_ms: number;
  median_ms: number;
  p95_ms: number;
}

export async function drawing(browser: Browser): Promise<Section> {
  execFileSync("npx", ["vite", "build", "--config", "src/viz/bench/vite.config.ts"], { cwd: ROOT });
  const server = createServer((request, answer) => {
    const path = join(BUILT, new URL(request.url ?? "/", "http://x").pathname);
    if (!path.startsWith(BUILT) || !existsSync(path)) {
      answer.statusCode = 404;
      answer.end();
      return;
    }
    answer.setHeader("content-type", TYPES[extname(path)] ?? "application/octet-stream");
    createReadStream(path).pipe(answer);
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  const { port } = server.address() as AddressInfo;
  const page = await browser.newPage({ viewport: { width: 1440, height: 900 } });
  await page.goto(`http://127.0.0.1:${port}/bench.html`);
  await page.waitForFunction(() => "berthBench" in globalThis);
  const found = await page.evaluate(() =>
    (globalThis as never as { berthBench: { benchAll(): Promise<unknown> } }).berthBench.benchAll(),
  );
  await page.close();
  server.close();
  return {
    title: "Drawing and searching",
    text: "Canvases are drawn anew with all their data changed, from the new data to pixels that are read back. A log of 1,000,000 lines is searched; what counts is the longest time for which the page does not react.",
    rows: rowsOf(found as never),
  };
}

interface Search {
  lines: number;
  elapsed_ms: number;
  longest_block_ms: number;
  found: number;
}

interface Found {
  heat_1024x120: Times;
  gantt_2000: Times;
  search_plain: Search;
  search_regex: Search;
  append_million: Pick<Search, "elapsed_ms" | "longest_block_ms">;
}

function rowsOf(found: Found): Row[] {
  const {
    heat_1024x120: heat,
    gantt_2000: gantt,
    search_plain: plain,
    search_regex: regex,
    append_million: append,
  } = found;
  return [
    below("heat map, 1,024 GPUs × 120 values, median", heat.median_ms, "ms", 33),
    figure("heat map, 95 of 100", heat.p95_ms, "ms"),
    below("Gantt, 2,000 bars, median", gantt.median_ms, "ms", 33),
    figure("Gantt, 95 of 100", gantt.p95_ms, "ms"),
    exactly("lines that are searched", Math.min(plain.lines, regex.lines), "lines", 1_000_000),
    figure("lines found by words", plain.found, "lines"),
    figure("search by words: time to the result", plain.elapsed_ms, "ms"),
    below("search by words: longest without reaction", plain.longest_block_ms, "ms", 100),
    figure("lines found by a regular expression", regex.found, "lines"),
    figure("search by a regular expression: time to the result", regex.elapsed_ms, "ms"),
    below(
      "search by a regular expression: longest without reaction",
      regex.longest_block_ms,
      "ms",
      100,
    ),
    figure("1,000,000 lines that come while the end is followed", append.elapsed_ms, "ms"),
    figure("longest without reaction meanwhile", append.longest_block_ms, "ms"),
  ];
}
