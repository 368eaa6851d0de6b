// Chunks of a log, as the API sends them, to lines. Pure but for what it remembers between chunks.

import type { LogChunk } from "@/api/types";
import { millis } from "@/lib/format";

export interface Line {
  text: string;
  at?: number | undefined;
  rank?: number | undefined;
}

const encoder = new TextEncoder();

/**
 * A process may print half a line, and processes print at the same time: the beginning of a line is
 * kept for each of them until its end comes.
 */
export class Assembler {
  #rest = new Map<string, Line>();
  /** Where to go on in the attempt after the last chunk. */
  next = 0;
  attempt: number | undefined;
  ended = false;
  ranks = new Set<number>();

  take(chunks: readonly LogChunk[]): Line[] {
    const out: Line[] = [];
    for (const c of chunks) if (c.text !== "") this.ranks.add(c.rank);
    // Where there is one process, its number says nothing.
    const rankOf = (c: LogChunk) => (this.ranks.size > 1 ? c.rank : undefined);
    for (const c of chunks) {
      if (this.attempt !== c.attempt) {
        if (this.attempt !== undefined)
          out.push(...this.flush(), { text: `── attempt ${c.attempt} ──` });
        this.attempt = c.attempt;
        this.ended = false;
      }
      if (c.dropped > 0) out.push({ text: `… ${c.dropped} bytes are not kept any more …` });
      if (c.end) this.ended = true;
      this.next = c.position + encoder.encode(c.text).length;
      if (c.text === "") continue;
      const key = `${c.task}/${c.rank}/${c.stream}`;
      const at = millis(c.at);
      const begun = this.#rest.get(key);
      const parts = c.text.split("\n");
      const rest = parts.pop() as string;
      parts.forEach((text, i) => {
        const head = i === 0 && begun ? begun : undefined;
        out.push({
          text: (head?.text ?? "") + text.replace(/\r$/, ""),
          at: head?.at ?? at,
          rank: rankOf(c),
        });
      });
      if (parts.length > 0 || !begun) {
        if (rest) this.#rest.set(key, { text: rest, at, rank: rankOf(c) });
        else this.#rest.delete(key);
      } else begun.text += rest;
    }
    return out;
  }

  /** What was printed without the end of a line; at the end of the log. */
  flush(): Line[] {
    const out = [...this.#rest.values()];
    this.#rest.clear();
    return out;
  }
}
