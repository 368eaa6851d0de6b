// The filter and the order of a search in MLflow's grammar, and the position of an error. Pure.

import { split } from "./row";

/** A word without a comparison searches the names of runs. */
export function filterOf(text: string | undefined): string {
  const asked = text?.trim() ?? "";
  if (asked === "") return "";
  return /^[\p{L}\p{N}_.:/-]+$/u.test(asked) ? `attributes.run_name ILIKE '%${asked}%'` : asked;
}

export interface Where {
  before: string;
  at: string;
  after: string;
}

/** The position in the filter that an error names. It may be just after the end. */
export function errorAt(filter: string, message: string): Where | undefined {
  // The message may quote the filter, so only its last position counts.
  const found = [...message.matchAll(/at character (\d+)/g)].at(-1)?.[1];
  if (found === undefined) return undefined;
  const all = [...filter];
  const at = Math.min(Math.max(1, Number(found)), all.length + 1) - 1;
  return {
    before: all.slice(0, at).join(""),
    at: all[at] ?? " ",
    after: all.slice(at + 1).join(""),
  };
}

/** The message without the filter, because the page shows the filter beside it. */
export function errorText(message: string): string {
  const cut = /^Invalid clause\(s\) in filter string '.*': (expected [\s\S]*)$/.exec(message)?.[1];
  const text = cut ?? message;
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** `metrics.val loss` needs quotes in a filter. */
export function quoted(key: string): string {
  const { kind, name } = split(key);
  if (kind === "attributes") return ATTRIBUTES[name] ?? name;
  const plain = name.split(".").every((part) => /^[\p{L}\p{N}_]+$/u.test(part));
  return plain ? key : `${kind}.\`${name}\``;
}

const ATTRIBUTES: Record<string, string> = {
  name: "run_name",
  id: "run_id",
  user: "user_id",
  status: "status",
  start: "start_time",
};

/** The order for the server. Undefined for values that only the portal computes. */
export function orderBy(sort: string | undefined): string[] | undefined {
  if (!sort) return undefined;
  const desc = sort.startsWith("-");
  const key = desc ? sort.slice(1) : sort;
  if (key === "duration") return undefined;
  return [`${quoted(key)} ${desc ? "DESC" : "ASC"}`];
}

/** The filter and another comparison. */
export function and(filter: string, clause: string): string {
  return filter === "" ? clause : `${filter} AND ${clause}`;
}

/** The key of `berth runs --sort`. */
export function sortFlag(sort: string | undefined): string | undefined {
  const [order] = orderBy(sort) ?? [];
  if (!order) return undefined;
  const key = order.replace(/ (ASC|DESC)$/, "");
  return order.endsWith("DESC") ? `-${key}` : key;
}
