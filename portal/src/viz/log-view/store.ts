// The lines of a log in memory: a few thousand to a chunk, each chunk one text.
//
// A million objects would take ten times the room and stall the page whenever memory is collected.

export interface LogLine {
  text: string;
  /** When it was written; milliseconds. */
  at?: number | undefined;
  rank?: number | undefined;
}

export interface Chunk {
  /** The absolute number of its first line, from 0. */
  first: number;
  count: number;
  /** All lines, with a line feed after each. */
  text: string;
  /** Where each line begins in `text`; one more for the end. */
  starts: Uint32Array;
  at: Float64Array | null;
  rank: Int32Array | null;
  escapes: boolean;
}

export interface LogLimits {
  /** Characters in memory at most; a character takes one or two bytes. */
  characters?: number | undefined;
  lines?: number | undefined;
  /** Longer lines are cut. */
  line?: number | undefined;
}

export const CHUNK = 4096;
const NO_TIME = Number.NaN;
const NO_RANK = -1;

export class LogStore {
  #chunks: Chunk[] = [];
  #open: string[] = [];
  #openAt: number[] = [];
  #openRank: number[] = [];
  #openFirst = 0;
  #openText: Chunk | null = null;
  #characters = 0;
  #openCharacters = 0;
  #widest = 0;
  #timed = false;
  #ranked = false;
  #version = 0;
  #generation = 0;
  #listeners = new Set<() => void>();
  readonly #most: Required<{ characters: number; lines: number; line: number }>;

  constructor(limits: LogLimits = {}) {
    this.#most = {
      characters: limits.characters ?? 200_000_000,
      lines: limits.lines ?? 2_000_000,
      line: limits.line ?? 20_000,
    };
  }

  /** The absolute number of the first line that is still here. */
  get first(): number {
    return this.#chunks[0]?.first ?? this.#openFirst;
  }
  /** One past the last. */
  get end(): number {
    return this.#openFirst + this.#open.length;
  }
  get count(): number {
    return this.end - this.first;
  }
  /** How many older lines were let go. */
  get dropped(): number {
    return this.first;
  }
  get characters(): number {
    return this.#characters + this.#openCharacters;
  }
  /** Characters of the longest line so far. */
  get widest(): number {
    return this.#widest;
  }
  get timed(): boolean {
    return this.#timed;
  }
  get ranked(): boolean {
    return this.#ranked;
  }
  /** Changes with the content. */
  get version(): number {
    return this.#version;
  }
  /** Changes when it was cleared: what was found before means nothing then. */
  get generation(): number {
    return this.#generation;
  }

  append(lines: readonly (string | LogLine)[]): void {
    if (lines.length === 0) return;
    for (const line of lines) {
      if (typeof line === "string") this.#push(line, NO_TIME, NO_RANK);
      else this.#push(line.text, line.at ?? NO_TIME, line.rank ?? NO_RANK);
    }
    this.#dropOldest();
    this.#changed();
  }

  clear(): void {
    this.#chunks = [];
    this.#open = [];
    this.#openAt = [];
    this.#openRank = [];
    this.#openFirst = 0;
    this.#openText = null;
    this.#characters = 0;
    this.#openCharacters = 0;
    this.#widest = 0;
    this.#timed = false;
    this.#ranked = false;
    this.#generation++;
    this.#changed();
  }

  /** The line with an absolute number; null where it was dropped or is not there yet. */
  line(number: number): LogLine | null {
    if (number >= this.#openFirst) {
      const i = number - this.#openFirst;
      const text = this.#open[i];
      return text === undefined ? null : entry(text, this.#openAt[i], this.#openRank[i]);
    }
    const chunk = this.#chunkOf(number);
    if (!chunk) return null;
    const i = number - chunk.first;
    const text = chunk.text.slice(chunk.starts[i], (chunk.starts[i + 1] as number) - 1);
    return entry(text, chunk.at?.[i], chunk.rank?.[i]);
  }

  /** How long a line is, without making a text of it. */
  lengthOf(number: number): number {
    if (number >= this.#openFirst) return this.#open[number - this.#openFirst]?.length ?? 0;
    const chunk = this.#chunkOf(number);
    if (!chunk) return 0;
    const i = number - chunk.first;
    return (chunk.starts[i + 1] as number) - (chunk.starts[i] as number) - 1;
  }

  /** All chunks from the one that holds a line on; the last one is a snapshot. */
  chunksFrom(number: number): Chunk[] {
    const out = this.#chunks.slice(this.#indexOf(Math.max(number, this.first)));
    if (this.#open.length > 0) out.push(this.#snapshot());
    return out.filter((chunk) => chunk.first + chunk.count > number);
  }

  /** Lines as one text, for the clipboard. */
  text(from: number, to: number, write: (line: LogLine) => string): string {
    const out: string[] = [];
    for (let n = Math.max(from, this.first); n < Math.min(to, this.end); n++) {
      const line = this.line(n);
      if (line) out.push(write(line));
    }
    return out.length ? `${out.join("\n")}\n` : "";
  }

  subscribe = (changed: () => void): (() => void) => {
    this.#listeners.add(changed);
    return () => this.#listeners.delete(changed);
  };

  getVersion = (): number => this.#version;

  #push(given: string, at: number, rank: number): void {
    let text = given;
    if (text.includes("\n")) {
      for (const part of text.replace(/\r?\n$/, "").split("\n")) this.#push(part, at, rank);
      return;
    }
    // A progress bar writes over its line again and again: what stands last is what is seen.
    if (text.includes("\r")) {
      text = text.replace(/\r+$/, "");
      text = text.slice(text.lastIndexOf("\r") + 1);
    }
    if (text.length > this.#most.line) {
      text = `${text.slice(0, this.#most.line)}… (${text.length - this.#most.line} more characters)`;
    }
    if (!Number.isNaN(at)) this.#timed = true;
    if (rank !== NO_RANK) this.#ranked = true;
    if (text.length > this.#widest) this.#widest = text.length;
    this.#open.push(text);
    this.#openAt.push(at);
    this.#openRank.push(rank);
    this.#openCharacters += text.length + 1;
    this.#openText = null;
    if (this.#open.length >= CHUNK) this.#close();
  }

  #snapshot(): Chunk {
    if (this.#openText) return this.#openText;
    const count = this.#open.length;
    const starts = new Uint32Array(count + 1);
    let at = 0;
    for (let i = 0; i < count; i++) {
      starts[i] = at;
      at += (this.#open[i] as string).length + 1;
    }
    starts[count] = at;
    const text = count ? `${this.#open.join("\n")}\n` : "";
    this.#openText = {
      first: this.#openFirst,
      count,
      text,
      starts,
      at: this.#timed ? Float64Array.from(this.#openAt) : null,
      rank: this.#ranked ? Int32Array.from(this.#openRank) : null,
      escapes: text.includes("\u001b") || text.includes("\u009b"),
    };
    return this.#openText;
  }

  #close(): void {
    this.#chunks.push(this.#snapshot());
    this.#characters += this.#openCharacters;
    this.#openFirst += this.#open.length;
    this.#open = [];
    this.#openAt = [];
    this.#openRank = [];
    this.#openCharacters = 0;
    this.#openText = null;
  }

  #dropOldest(): void {
    while (
      this.#chunks.length > 0 &&
      (this.characters > this.#most.characters || this.count > this.#most.lines)
    ) {
      const gone = this.#chunks.shift();
      this.#characters -= gone?.text.length ?? 0;
    }
  }

  #indexOf(number: number): number {
    let low = 0;
    let high = this.#chunks.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      const chunk = this.#chunks[middle] as Chunk;
      if (chunk.first + chunk.count <= number) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  #chunkOf(number: number): Chunk | null {
    const chunk = this.#chunks[this.#indexOf(number)];
    return chunk && number >= chunk.first ? chunk : null;
  }

  #changed(): void {
    this.#version++;
    for (const listener of this.#listeners) listener();
  }
}

function entry(text: string, at: number | undefined, rank: number | undefined): LogLine {
  return {
    text,
    at: at === undefined || Number.isNaN(at) ? undefined : at,
    rank: rank === undefined || rank === NO_RANK ? undefined : rank,
  };
}
