import {
  type Document,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  Pair,
  parseDocument,
  Scalar,
  YAMLMap,
  YAMLSeq,
} from "yaml";
import { BLOCKS, orderOf } from "./keys";

/**
 * The job file as text and as a document. The text is the truth: the form reads it from here, and
 * what the form changes is written into the same document, so that comments, unknown keys and the
 * order of things stay. Scalars are text, as Berth reads them: `0.50` stays `0.50`.
 */
export interface Mistake {
  /** From 1. */
  line: number;
  column: number;
  message: string;
}

export interface JobDoc {
  text: string;
  doc: Document;
  /** Why the text cannot be read. The form waits until there are none. */
  mistakes: Mistake[];
  lines: LineCounter;
}

const OPTIONS = { schema: "failsafe", prettyErrors: false } as const;
const MOST_MISTAKES = 20;

export function readDoc(text: string): JobDoc {
  const lines = new LineCounter();
  const doc = parseDocument(text, { ...OPTIONS, lineCounter: lines });
  const at = (offset: number, message: string): Mistake => {
    const { line, col } = lines.linePos(offset);
    return { line: Math.max(1, line), column: Math.max(1, col), message };
  };
  const mistakes = doc.errors
    .slice(0, MOST_MISTAKES)
    .map((e) => at(e.pos[0], `This is not YAML: ${plain(e.message)}`));
  const top = doc.contents;
  if (mistakes.length === 0 && top !== null && !isMap(top) && !isEmpty(top))
    mistakes.push(at(top.range?.[0] ?? 0, "A job file is a list of keys with values: `gpus: 1`."));
  return { text, doc, mistakes, lines };
}

function isEmpty(node: unknown): boolean {
  return isScalar(node) && (node.value === null || node.value === "");
}

const plain = (message: string) => message.replace(/ at line \d+, column \d+:?[\s\S]*$/, "");

export type Value = string | Value[] | { [key: string]: Value };

/** What stands at a key, as text, lists and maps. Nothing where there is nothing. */
export function valueAt(job: JobDoc, ...path: string[]): Value | undefined {
  if (job.mistakes.length > 0) return undefined;
  return readNode(job.doc.getIn(path, true) as Node | undefined);
}

function readNode(node: unknown): Value | undefined {
  if (node === undefined || node === null) return undefined;
  if (isScalar(node)) {
    const text = node.value === null ? "" : String(node.value);
    return text === "" && node.type === Scalar.PLAIN ? undefined : text;
  }
  if (isSeq(node)) return node.items.map((item) => readNode(item) ?? "");
  if (isMap(node)) {
    const out: { [key: string]: Value } = {};
    for (const pair of node.items) out[keyText(pair as Pair)] = readNode(pair.value) ?? "";
    return out;
  }
  // An alias: only the text tells.
  return isAlias(node) ? { alias: node.source } : undefined;
}

function keyText(pair: Pair): string {
  return isScalar(pair.key) ? String(pair.key.value ?? "") : String(pair.key);
}

export function keysOf(job: JobDoc): string[] {
  const top = job.doc.contents;
  return isMap(top) ? top.items.map((pair) => keyText(pair as Pair)) : [];
}

/** The text with another value at a key; `undefined` takes the key away. */
export function withValue(text: string, path: readonly string[], value: Value | undefined): string {
  const job = readDoc(text);
  if (job.mistakes.length > 0) return text;
  const doc = job.doc;
  if (!isMap(doc.contents)) {
    if (value === undefined) return text;
    const kept = text.trim();
    doc.contents = new YAMLMap() as typeof doc.contents;
    // What stood there alone was a comment, or nothing.
    doc.commentBefore = kept.replace(/^#/gm, "") || null;
    doc.comment = null;
  }
  put(doc.contents as YAMLMap, path, value, path[0] ?? "");
  if ((doc.contents as YAMLMap).items.length === 0) {
    const words = [doc.commentBefore, (doc.contents as YAMLMap).commentBefore, doc.comment];
    const left = words.filter(Boolean).map((c) => String(c).replace(/^/gm, "#"));
    return left.length > 0 ? `${left.join("\n")}\n` : "";
  }
  return doc.toString({ lineWidth: 0, flowCollectionPadding: false });
}

function put(map: YAMLMap, path: readonly string[], value: Value | undefined, top: string) {
  const [name, ...rest] = path as [string, ...string[]];
  const at = map.items.findIndex((pair) => keyText(pair as Pair) === name);
  const pair = map.items[at];

  if (rest.length > 0) {
    if (isMap(pair?.value)) {
      put(pair.value, rest, value, top);
      if (pair.value.items.length === 0) map.items.splice(at, 1);
      return;
    }
    if (value === undefined) return;
    const inner = new YAMLMap();
    inner.flow = !BLOCKS.has(top);
    put(inner, rest, value, top);
    if (pair) pair.value = inner;
    else insert(map, name, inner);
    return;
  }

  if (value === undefined) {
    if (pair) remove(map, at);
  } else if (pair && typeof value === "string" && isScalar(pair.value)) {
    setText(pair.value, value);
  } else if (pair) {
    const made = nodeOf(value, top);
    const old = pair.value as Node | null;
    if (old) {
      made.comment = old.comment ?? null;
      if (made instanceof YAMLMap && isMap(old)) keepEntries(made, old);
      if ((isMap(old) || isSeq(old)) && (isMap(made) || isSeq(made))) made.flow = old.flow ?? false;
    }
    pair.value = made;
  } else insert(map, name, nodeOf(value, top));
}

function remove(map: YAMLMap, at: number) {
  const [gone] = map.items.splice(at, 1);
  const key = gone?.key;
  const next = map.items[at]?.key;
  if (!isScalar(key)) return;
  if (isScalar(next) && key.spaceBefore) next.spaceBefore = true;
  if (at === 0) moveComment(key, isScalar(next) ? next : map);
}

/** What stands above the first key is about the file: it stays there. */
function moveComment(from: Node, to: Node) {
  const words = [from.commentBefore, to.commentBefore].filter(Boolean);
  if (words.length > 0) to.commentBefore = words.join("\n");
  from.commentBefore = null;
}

/** Entries that are as they were keep their comments. */
function keepEntries(made: YAMLMap, old: YAMLMap) {
  for (const pair of made.items) {
    const was = old.items.find((o) => keyText(o as Pair) === keyText(pair as Pair));
    if (!was) continue;
    pair.key = was.key;
    const same = JSON.stringify(readNode(was.value)) === JSON.stringify(readNode(pair.value));
    if (same) pair.value = was.value;
    else if (isScalar(was.value) && isScalar(pair.value))
      pair.value.comment = was.value.comment ?? null;
  }
}

/** Before the first key that comes later in the order of a job file. */
function insert(map: YAMLMap, name: string, value: Node) {
  const key = new Scalar(name);
  const order = orderOf(name);
  let at = map.items.length;
  if (order >= 0)
    for (let i = map.items.length - 1; i >= 0; i -= 1) {
      const other = orderOf(keyText(map.items[i] as Pair));
      if (other > order) at = i;
      else if (other >= 0) break;
    }
  const first = map.items[0]?.key;
  if (at === 0 && isScalar(first)) moveComment(first, key);
  map.items.splice(at, 0, new Pair(key, value) as never);
}

function nodeOf(value: Value, top: string): Scalar | YAMLSeq | YAMLMap {
  if (typeof value === "string") {
    const scalar = new Scalar(value);
    setText(scalar, value);
    return scalar;
  }
  if (Array.isArray(value)) {
    const seq = new YAMLSeq();
    seq.flow = true;
    for (const item of value) seq.items.push(nodeOf(item, ""));
    return seq;
  }
  const map = new YAMLMap();
  map.flow = !BLOCKS.has(top);
  for (const [key, item] of Object.entries(value)) map.set(new Scalar(key), nodeOf(item, ""));
  return map;
}

function setText(scalar: Scalar, text: string) {
  scalar.value = text;
  delete scalar.source;
  const blocks: unknown[] = [Scalar.BLOCK_LITERAL, Scalar.BLOCK_FOLDED];
  if (text.includes("\n")) scalar.type = Scalar.BLOCK_LITERAL;
  else if (blocks.includes(scalar.type)) scalar.type = Scalar.PLAIN;
  // An empty text would be no value at all without its quotes.
  if (text === "") scalar.type = Scalar.QUOTE_DOUBLE;
}

/** Where a key stands, for a mistake that names only the key: `checkpoint.every`. */
export function placeOf(job: JobDoc, path: string): { line: number; column: number } | undefined {
  const steps = path
    .replace(/\[(\d+)\]/g, ".$1")
    .split(".")
    .filter(Boolean);
  let node: unknown = job.doc.contents;
  let offset: number | undefined;
  for (const step of steps) {
    if (isMap(node)) {
      const pair = node.items.find((p) => keyText(p as Pair) === step);
      if (!pair) break;
      offset = (pair.key as Scalar).range?.[0] ?? offset;
      node = pair.value;
    } else if (isSeq(node)) {
      node = node.items[Number(step)];
      offset = (node as Node | undefined)?.range?.[0] ?? offset;
    } else break;
  }
  if (offset === undefined) return undefined;
  const { line, col } = job.lines.linePos(offset);
  return { line, column: col };
}
