// Addresses in a line. Pure.

export interface Link {
  start: number;
  end: number;
  href: string;
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: an address has none
const ADDRESS = /\bhttps?:\/\/[^\s<>"'`\u0000-\u001f\u007f]+/gi;

/** http and https only, and only what really is an address; marks after it do not belong to it. */
export function findLinks(text: string): Link[] {
  if (!text.includes("://")) return [];
  const out: Link[] = [];
  ADDRESS.lastIndex = 0;
  for (let m = ADDRESS.exec(text); m; m = ADDRESS.exec(text)) {
    const found = trim(m[0]);
    const href = safe(found);
    if (href) out.push({ start: m.index, end: m.index + found.length, href });
  }
  return out;
}

function trim(given: string): string {
  let text = given;
  for (;;) {
    const last = text[text.length - 1] ?? "";
    if (".,;:!?".includes(last)) text = text.slice(0, -1);
    else if (last === ")" && count(text, ")") > count(text, "(")) text = text.slice(0, -1);
    else if (last === "]" && count(text, "]") > count(text, "[")) text = text.slice(0, -1);
    else return text;
  }
}

function count(text: string, of: string): number {
  return text.split(of).length - 1;
}

function safe(text: string): string | null {
  try {
    const url = new URL(text);
    const web = url.protocol === "http:" || url.protocol === "https:";
    // Names and passwords before the host are how people are led to another host than they think.
    return web && url.username === "" && url.password === "" ? url.href : null;
  } catch {
    return null;
  }
}
