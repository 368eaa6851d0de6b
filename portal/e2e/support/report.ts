// Rows of figures, as JSON and as a page that people read.
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { cpus, release, totalmem } from "node:os";
import { join, resolve } from "node:path";

export type Row = {
  name: string;
  value: number;
  unit: string;
  target: string | null;
  holds: boolean | null;
  command: string;
};
export type Section = { title: string; text: string; rows: Row[] };

const COMMAND = "make evidence-portal";
const OUT = resolve(
  process.env.EVIDENCE_OUT ?? join(import.meta.dirname, "../../../docs/evidence"),
);

const rounded = (value: number) => Math.round(value * 1000) / 1000;

export function figure(name: string, value: number, unit: string): Row {
  return { name, value: rounded(value), unit, target: null, holds: null, command: COMMAND };
}

export function atMost(name: string, value: number, unit: string, most: number): Row {
  return { ...figure(name, value, unit), target: `≤ ${most}`, holds: value <= most };
}

export function below(name: string, value: number, unit: string, limit: number): Row {
  return { ...figure(name, value, unit), target: `< ${limit}`, holds: value < limit };
}

export function atLeast(name: string, value: number, unit: string, least: number): Row {
  return { ...figure(name, value, unit), target: `≥ ${least}`, holds: value >= least };
}

export function exactly(name: string, value: number, unit: string, wanted: number): Row {
  return { ...figure(name, value, unit), target: `= ${wanted}`, holds: value === wanted };
}

/** Writes portal.json and portal.md. */
export function write(sections: Section[]): void {
  const rows = sections.flatMap((section) => section.rows);
  const aimed = rows.filter((row) => row.holds !== null);
  const held = aimed.filter((row) => row.holds);
  const [cpu] = cpus();
  const machine = `${cpus().length} cores of ${cpu?.model.trim()}, ${Math.round(totalmem() / 2 ** 30)} GiB of memory, Linux ${release()}`;
  const parts = [
    "# The portal in figures\n",
    `Taken on ${new Date().toISOString().slice(0, 10)} with \`${COMMAND}\` on ${machine}, ${chromium()}, headless and without a GPU. The same rows are in \`portal.json\`.\n`,
    `${held.length} of the ${aimed.length} targets hold.\n`,
    ...sections.map(page),
  ];
  writeFileSync(join(OUT, "portal.json"), `${JSON.stringify(rows, null, 2)}\n`);
  writeFileSync(join(OUT, "portal.md"), parts.join("\n"));
}

function page({ title, text, rows }: Section): string {
  const lines = rows.map(({ name, value, unit, target, holds }) => {
    const word = holds === null ? "" : holds ? "yes" : "**no**";
    return `| ${name} | ${value} | ${unit} | ${target ?? ""} | ${word} |`;
  });
  return [
    `## ${title}\n`,
    `${text}\n`,
    "| figure | value | unit | target | holds |",
    "| --- | ---: | --- | ---: | --- |",
    ...lines,
    "",
  ].join("\n");
}

function chromium(): string {
  try {
    return execFileSync(process.env.CHROMIUM ?? "chromium", ["--version", "--no-sandbox"], {
      encoding: "utf8",
    })
      .trim()
      .split(" ")
      .slice(0, 2)
      .join(" ");
  } catch {
    return "Chromium";
  }
}

export function median(values: number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}

/** Seconds of CPU that a process has used so far. */
export function cpuSeconds(process: number): number {
  const fields = readFileSync(`/proc/${process}/stat`, "utf8").split(") ")[1]?.split(" ") ?? [];
  return (Number(fields[11]) + Number(fields[12])) / 100;
}
