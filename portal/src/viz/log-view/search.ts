// Searches a store: plain text in slices on the page, expressions in a worker.
//
// Plain text is not sent to the worker because copying it there takes longer than searching it.

import { strip } from "./ansi";
import { expression, matchPlain, type Query } from "./match";
import type { Answer, Task } from "./search.worker";
import type { Chunk, LogStore } from "./store";

export type { Query } from "./match";

export interface Found {
  /** Absolute numbers of the lines, ascending. */
  lines: Lines;
  /** How far it has come: the number of the first line that was not looked at. */
  upTo: number;
  done: boolean;
  error: string | null;
}

/** Numbers that grow without copying all for each. */
export class Lines {
  #buffer = new Uint32Array(1024);
  length = 0;
  push(values: readonly number[]): void {
    if (this.length + values.length > this.#buffer.length) {
      const size = Math.max(this.#buffer.length * 2, this.length + values.length);
      const bigger = new Uint32Array(size);
      bigger.set(this.#buffer.subarray(0, this.length));
      this.#buffer = bigger;
    }
    this.#buffer.set(values, this.length);
    this.length += values.length;
  }
  at(index: number): number | undefined {
    return index >= 0 && index < this.length ? this.#buffer[index] : undefined;
  }
  /** The index of the first line at or after a number. */
  from(number: number): number {
    let low = 0;
    let high = this.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#buffer[middle] as number) < number) low = middle + 1;
      else high = middle;
    }
    return low;
  }
  /** Forgets what is before a number. */
  dropBefore(number: number): void {
    const gone = this.from(number);
    if (gone === 0) return;
    this.#buffer.copyWithin(0, gone, this.length);
    this.length -= gone;
  }
}

const SLICE_MS = 6;
const PATIENCE_MS = 2000;
const TOO_LONG = "The expression takes too long. Try a simpler one.";

export class Search {
  readonly found: Found;
  readonly query: Query;
  #store: LogStore;
  #tell: () => void;
  #stopped = false;
  #running = false;
  #worker: Worker | null = null;
  #expression: RegExp | null = null;
  #generation: number;

  constructor(store: LogStore, query: Query, tell: () => void) {
    this.#store = store;
    this.#tell = tell;
    this.query = query;
    this.#generation = store.generation;
    this.found = { lines: new Lines(), upTo: store.first, done: false, error: null };
    const made = expression(query);
    if (typeof made === "string") {
      this.found.error = made;
      this.found.done = true;
    } else this.#expression = made;
  }

  /** Goes on to the end of what the store has now. Call it again when lines were added. */
  async run(): Promise<void> {
    if (this.#running || this.#stopped || this.found.error) return;
    this.#running = true;
    this.found.done = false;
    try {
      while (!this.#stopped && !this.found.error) {
        if (this.#store.generation !== this.#generation) {
          this.#generation = this.#store.generation;
          this.found.lines.length = 0;
          this.found.upTo = 0;
        }
        const [chunk] = this.#store.chunksFrom(this.found.upTo);
        if (!chunk) break;
        if (this.query.regex) await this.#inWorker(chunk);
        else await this.#inSlices();
      }
    } finally {
      this.#running = false;
    }
    if (this.#stopped) return;
    this.found.done = true;
    this.#tell();
  }

  stop(): void {
    this.#stopped = true;
    this.#worker?.terminate();
    this.#worker = null;
  }

  async #inSlices(): Promise<void> {
    const until = performance.now() + SLICE_MS;
    for (const chunk of this.#store.chunksFrom(this.found.upTo)) {
      const text = chunk.escapes ? strip(chunk.text) : chunk.text;
      this.#add(chunk, matchPlain(text, this.query.text, this.query.matchCase, chunk.first));
      if (performance.now() >= until) break;
    }
    this.#tell();
    await pause();
  }

  async #inWorker(chunk: Chunk): Promise<void> {
    const text = chunk.escapes ? strip(chunk.text) : chunk.text;
    const lines = await this.#ask(text, chunk.first);
    if (lines === null) {
      if (!this.#stopped) this.found.error = TOO_LONG;
    } else this.#add(chunk, lines);
    this.#tell();
  }

  #add(chunk: Chunk, lines: number[]): void {
    const { found } = this;
    // The open chunk grows: what was looked at before is not counted twice.
    found.lines.push(found.upTo > chunk.first ? lines.filter((n) => n >= found.upTo) : lines);
    found.upTo = chunk.first + chunk.count;
    found.lines.dropBefore(this.#store.first);
  }

  #ask(text: string, base: number): Promise<number[] | null> {
    const made = this.#expression as RegExp;
    this.#worker ??= new Worker(new URL("./search.worker.ts", import.meta.url), { type: "module" });
    const worker = this.#worker;
    return new Promise((resolve) => {
      const give = (lines: number[] | null) => {
        clearTimeout(timer);
        worker.onmessage = null;
        worker.onerror = null;
        resolve(lines);
      };
      // The worker's script may still be on its way for the first answer.
      const timer = setTimeout(() => {
        worker.terminate();
        this.#worker = null;
        give(null);
      }, PATIENCE_MS);
      worker.onmessage = (event: MessageEvent<Answer>) => give(event.data.lines);
      worker.onerror = () => give(null);
      worker.postMessage({
        id: 0,
        text,
        base,
        source: made.source,
        flags: made.flags,
      } satisfies Task);
    });
  }
}

/** Lets the page draw and answer before the next slice. `scheduler.yield` would go before timers. */
function pause(): Promise<void> {
  return new Promise((resolve) => {
    const channel = new MessageChannel();
    channel.port1.onmessage = () => {
      channel.port1.close();
      resolve();
    };
    channel.port2.postMessage(0);
  });
}
