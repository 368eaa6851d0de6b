// A line cut into pieces that each have one look: a style, a link, a mark. Pure.

import { parseAnsi, type Style } from "./ansi";
import { findLinks } from "./links";
import { marks } from "./match";

export interface Piece {
  text: string;
  style: Style | null;
  mark: boolean;
}

export interface Run {
  /** The address, where the run is a link. */
  href: string | null;
  pieces: Piece[];
}

export function pieces(line: string, expression: RegExp | null): Run[] {
  const { text, spans } = parseAnsi(line);
  const links = findLinks(text);
  const found = expression ? marks(text, expression) : [];
  if (spans.length + links.length + found.length === 0) {
    return [{ href: null, pieces: [{ text, style: null, mark: false }] }];
  }
  const cuts = new Set([0, text.length]);
  for (const part of [...spans, ...links, ...found]) cuts.add(part.start).add(part.end);
  const sorted = [...cuts].sort((a, b) => a - b);
  const out: Run[] = [];
  let [s, l, m] = [0, 0, 0];
  for (let i = 0; i + 1 < sorted.length; i++) {
    const [from, to] = [sorted[i] as number, sorted[i + 1] as number];
    while (s < spans.length && (spans[s]?.end ?? 0) <= from) s++;
    while (l < links.length && (links[l]?.end ?? 0) <= from) l++;
    while (m < found.length && (found[m]?.end ?? 0) <= from) m++;
    const span = spans[s];
    const link = links[l];
    const mark = found[m];
    const href = link && link.start <= from ? link.href : null;
    const piece: Piece = {
      text: text.slice(from, to),
      style: span && span.start <= from ? span.style : null,
      mark: mark !== undefined && mark.start <= from,
    };
    const last = out[out.length - 1];
    const joins = last && last.href === href && (href === null || link?.start !== from);
    if (joins) last.pieces.push(piece);
    else out.push({ href, pieces: [piece] });
  }
  return out;
}
