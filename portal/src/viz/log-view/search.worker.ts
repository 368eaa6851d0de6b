// Runs regular expressions off the page: one that never ends must not freeze it.

import { matchRegex } from "./match";

export interface Task {
  id: number;
  text: string;
  base: number;
  source: string;
  flags: string;
}

export interface Answer {
  id: number;
  lines: number[];
}

self.onmessage = (event: MessageEvent<Task>) => {
  const { id, text, base, source, flags } = event.data;
  const lines = matchRegex(text, new RegExp(source, flags), base);
  self.postMessage({ id, lines } satisfies Answer);
};
