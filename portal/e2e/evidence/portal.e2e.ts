// The published figures about the portal: `make evidence-portal`.
//
//   HISTORY   a home with 50,000 jobs, which is changed; .ci/evidence-portal writes it
//   ONLY      some parts: bundle, drawing, rows, runs, streams, live; then nothing is written
import { expect, test } from "vitest";
import { openBrowser } from "../support/browser";
import { type Section, write } from "../support/report";
import { startServer } from "../support/server";
import { bundle } from "./bundle";
import { drawing } from "./drawing";
import { live } from "./live";
import { firstRows } from "./rows";
import { manyRuns } from "./runs";
import { streams } from "./streams";

const only = process.env.ONLY?.split(",");
const wanted = (part: string) => !only || only.includes(part);

test("the figures of the portal", async () => {
  const browser = await openBrowser();
  const sections: Section[] = [];
  const add = (section: Section) => {
    sections.push(section);
    for (const { name, value, unit, target, holds } of section.rows)
      console.log(`${name}: ${value} ${unit}`, target ?? "", holds === false ? "MISSED" : "");
  };
  if (wanted("bundle")) add(bundle());
  if (wanted("drawing")) add(await drawing(browser));
  if (wanted("rows")) {
    const home = process.env.HISTORY;
    expect(home, "HISTORY names the home with many jobs").toBeTruthy();
    const server = await startServer(["--gpus", "64xH100"], undefined, undefined, home);
    add(await firstRows(browser, server));
    await server.stop();
  }
  for (const [part, measure] of [
    ["runs", (server: Parameters<typeof streams>[0]) => manyRuns(browser, server)],
    ["streams", (server: Parameters<typeof streams>[0]) => streams(server)],
    ["live", (server: Parameters<typeof streams>[0]) => live(browser, server)],
  ] as const) {
    if (!wanted(part)) continue;
    const server = await startServer();
    add(await measure(server));
    await server.stop();
  }
  await browser.close();
  if (!only) write(sections);
}, 3_600_000);
