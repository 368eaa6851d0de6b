import { request } from "./client";

/** As much of an EventSource as is used. That one sends no headers, and so no key of the session. */
export interface Source {
  close(): void;
  onopen: (() => void) | null;
  onmessage: ((m: { data: string; lastEventId: string }) => void) | null;
  onerror: (() => void) | null;
}

/** Opens a stream of events. It is not opened again when it breaks: whoever opened it says when. */
export function openStream(url: string): Source {
  const gone = new AbortController();
  const source: Source = {
    close: () => gone.abort(),
    onopen: null,
    onmessage: null,
    onerror: null,
  };
  void read(url, source, gone.signal)
    .catch(() => {})
    .then(() => {
      if (!gone.signal.aborted) source.onerror?.();
    });
  return source;
}

async function read(url: string, source: Source, signal: AbortSignal) {
  const response = await request(url, { headers: { accept: "text/event-stream" }, signal });
  if (signal.aborted) return;
  source.onopen?.();
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  if (!reader) return;
  const take = reading((m) => source.onmessage?.(m));
  for (;;) {
    const { done, value } = await reader.read();
    if (done || signal.aborted) return;
    take(value);
  }
}

/** Takes a stream in pieces, however it is cut, and tells the events without a name that are whole. */
export function reading(tell: (m: { data: string; lastEventId: string }) => void) {
  let rest = "";
  let data: string[] = [];
  let kind = "";
  let lastEventId = "";
  const line = (text: string) => {
    if (text === "") {
      if (data.length > 0 && kind === "") tell({ data: data.join("\n"), lastEventId });
      data = [];
      kind = "";
      return;
    }
    const colon = text.indexOf(":");
    const field = colon < 0 ? text : text.slice(0, colon);
    const value = colon < 0 ? "" : text.slice(colon + 1).replace(/^ /, "");
    if (field === "data") data.push(value);
    else if (field === "event") kind = value;
    else if (field === "id") lastEventId = value;
  };
  return (piece: string) => {
    const parts = (rest + piece).split("\n");
    rest = parts.pop() ?? "";
    for (const part of parts) line(part.endsWith("\r") ? part.slice(0, -1) : part);
  };
}
