// Finds the lines of a text that match. Pure; the page and the worker both run it.

export interface Query {
  text: string;
  regex: boolean;
  matchCase: boolean;
}

/** The expression of a query; an error's message where it is none. */
export function expression(query: Query): RegExp | string {
  const flags = query.matchCase ? "g" : "gi";
  if (!query.regex) return new RegExp(quoted(query.text), flags);
  try {
    return new RegExp(query.text, `${flags}m`);
  } catch (error) {
    return error instanceof Error ? (error.message.split(": ").pop() ?? "") : "";
  }
}

function quoted(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
}

/**
 * Numbers of matching lines within `text`, of which each ends with a line feed. The engine's own
 * search without case is several times faster than folding the text first.
 */
export function matchPlain(
  text: string,
  needle: string,
  matchCase: boolean,
  base: number,
): number[] {
  const out: number[] = [];
  if (needle === "") return out;
  const find = new RegExp(quoted(needle), matchCase ? "g" : "gi");
  let line = 0;
  let seen = 0;
  for (let m = find.exec(text); m; m = find.exec(text)) {
    for (
      let feed = text.indexOf("\n", seen);
      feed !== -1 && feed < m.index;
      feed = text.indexOf("\n", seen)
    ) {
      line++;
      seen = feed + 1;
    }
    out.push(base + line);
    const end = text.indexOf("\n", m.index);
    if (end === -1) break;
    line++;
    seen = end + 1;
    find.lastIndex = seen;
  }
  return out;
}

export function matchRegex(text: string, expression: RegExp, base: number): number[] {
  const out: number[] = [];
  let start = 0;
  let line = 0;
  const once = new RegExp(expression.source, expression.flags.replace("g", ""));
  for (let feed = text.indexOf("\n"); feed !== -1; feed = text.indexOf("\n", start)) {
    if (once.test(text.slice(start, feed))) out.push(base + line);
    line++;
    start = feed + 1;
  }
  return out;
}

/** Where a line matches, for marks; at most a hundred. */
export function marks(text: string, expression: RegExp): { start: number; end: number }[] {
  const out: { start: number; end: number }[] = [];
  expression.lastIndex = 0;
  for (let m = expression.exec(text); m && out.length < 100; m = expression.exec(text)) {
    if (m[0] === "") expression.lastIndex++;
    else out.push({ start: m.index, end: m.index + m[0].length });
  }
  return out;
}
