import { type JobDoc, keysOf, type Value, valueAt } from "./doc";
import { type Key, keyOf } from "./keys";
import { quote, simpleWords } from "./shell";

/** The file as a command, or why a command cannot say it all. */
export interface CommandLine {
  /** Groups of words that stay together, for a command over several lines. */
  parts: string[];
  /** What flags have no words for. */
  unsaid: { key: string; why: string }[];
}

export function commandLine(job: JobDoc): CommandLine {
  const parts: string[] = [];
  const unsaid: CommandLine["unsaid"] = [];
  for (const name of keysOf(job)) {
    const key = keyOf(name);
    const value = valueAt(job, name);
    if (!key) {
      unsaid.push({ key: name, why: "there is no such key" });
      continue;
    }
    if (value === undefined || key.takes === "rest") continue;
    const said = flags(key, value);
    if (typeof said === "string") unsaid.push({ key: name, why: said });
    else parts.push(...said);
  }
  const run = valueAt(job, "run");
  if (run !== undefined) {
    const words = command(run);
    if (typeof words === "string") unsaid.push({ key: "run", why: words });
    else if (words.length > 0) parts.push(`-- ${words.map(quote).join(" ")}`);
  }
  return { parts, unsaid };
}

/** With the file where flags do not suffice. */
export function oneLine(line: CommandLine): string {
  return line.unsaid.length > 0 ? FROM_FILE : ["berth run", ...line.parts].join(" ");
}
export const FROM_FILE = "berth run -f job.yaml";

function command(run: Value): string[] | string {
  if (typeof run === "string") {
    if (run.trim() === "") return [];
    if (run.trim().includes("\n")) return "it is a script of several lines";
    return simpleWords(run) ?? ["bash", "-c", run.trim()];
  }
  if (Array.isArray(run) && run.every((w) => typeof w === "string")) return run as string[];
  return "it is no command";
}

/** The flags of a key, or why there are none. */
function flags(key: Key, value: Value): string[] | string {
  const flag = key.short ? `-${key.short}` : `--${key.flag}`;
  const said = (text: string) => `${flag} ${quote(text)}`;
  switch (key.takes) {
    case "switch":
      return value === "true" || value === "yes"
        ? [`--${key.flag}`]
        : [`--${key.flag}=${quote(text(value))}`];
    case "value":
      if (typeof value !== "string") return [said(flow(value))];
      return looksLikeYaml(value) ? LIKE_YAML : [said(value)];
    case "values": {
      if (typeof value === "string") return looksLikeYaml(value) ? LIKE_YAML : [said(value)];
      if (!Array.isArray(value)) return [said(flow(value))];
      if (value.length === 0) return [];
      const plain = value.every((v) => typeof v === "string" && !looksLikeYaml(v));
      return plain ? value.map((v) => said(v as string)) : [said(flow(value))];
    }
    case "names":
    case "pairs":
      return pairs(key, value, said);
    case "lists":
      return lists(value, said);
    case "rest":
      return [];
  }
}

const LIKE_YAML = "its text begins with a bracket, which a flag reads as YAML";
const looksLikeYaml = (value: string) => /^[[{]/.test(value);

function pairs(key: Key, value: Value, said: (text: string) => string): string[] | string {
  if (typeof value === "string")
    return key.takes === "names" ? [said(value)] : "it is no list of names and values";
  if (Array.isArray(value)) {
    if (key.takes !== "names" || !value.every((v) => typeof v === "string"))
      return "it is no list of names and values";
    return value.map((v) => said(v as string));
  }
  const out: string[] = [];
  for (const [name, item] of Object.entries(value)) {
    if (typeof item !== "string") return `\`${name}\` has more than a text`;
    if (name.includes("=")) return `the name \`${name}\` has an equals sign`;
    out.push(said(key.takes === "names" && name === item ? name : `${name}=${item}`));
  }
  return out;
}

function lists(value: Value, said: (text: string) => string): string[] | string {
  if (typeof value === "string" || Array.isArray(value)) return "it has no parameters";
  const out: string[] = [];
  for (const [name, item] of Object.entries(value)) {
    if (name === "zip") return "a flag cannot take parameters side by side";
    if (name === "at_most") return "a flag cannot say how many run at once";
    const values = Array.isArray(item) ? item : [item];
    if (!values.every((v) => typeof v === "string" && v.trim() === v && !v.includes(",")))
      return `values of \`${name}\` have commas or spaces of their own`;
    out.push(said(`${name}=${values.join(",")}`));
  }
  return out;
}

const text = (value: Value) => (typeof value === "string" ? value : flow(value));

/** A value as YAML in one line. */
export function flow(value: Value): string {
  if (typeof value === "string")
    return /^[\w./$@%+-][\w./$@%+ :-]*$/.test(value) && !/: |:$| $/.test(value)
      ? value
      : JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(flow).join(", ")}]`;
  return `{${Object.entries(value)
    .map(([k, v]) => `${flow(k)}: ${flow(v)}`)
    .join(", ")}}`;
}
