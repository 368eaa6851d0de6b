import { afterEach, expect, test, vi } from "vitest";
import { openStream, reading } from "./stream";

afterEach(() => vi.unstubAllGlobals());

const TEXT =
  ': hello\n\nid: 41\ndata: {"a":1}\n\nevent: other\ndata: no\n\nid: 42\r\ndata: one\r\ndata: two\r\n\r\ndata: cut';

test("events are read however the stream is cut, and unfinished ones are not told", () => {
  for (let size = 1; size <= TEXT.length; size += 1) {
    const told: string[] = [];
    const take = reading((m) => told.push(`${m.lastEventId} ${m.data}`));
    for (let at = 0; at < TEXT.length; at += size) take(TEXT.slice(at, at + size));
    expect(told).toEqual(['41 {"a":1}', "42 one\ntwo"]);
  }
});

function stubbed(answer: (request: Request) => Response) {
  const asked: Request[] = [];
  vi.stubGlobal("location", { origin: "http://berth.example:7117" });
  vi.stubGlobal("localStorage", { getItem: () => "00ff_aa11" });
  vi.stubGlobal("fetch", async (request: Request) => {
    asked.push(request);
    return answer(request);
  });
  return asked;
}

test("a stream is asked for with the key of the session, and says when it opens and breaks", async () => {
  const asked = stubbed(() => new Response("data: x\n\n"));
  const seen: string[] = [];
  const source = openStream("/v1/events?kind=job");
  source.onopen = () => void seen.push("open");
  source.onmessage = (m) => void seen.push(m.data);
  await new Promise<void>((done) => {
    source.onerror = done;
  });
  expect(seen).toEqual(["open", "x"]);
  expect(asked[0]?.headers.get("x-berth-session-key")).toBe("00ff_aa11");
  expect(asked[0]?.headers.get("accept")).toBe("text/event-stream");
});

test("a stream that is refused breaks, and one that was closed says nothing more", async () => {
  stubbed(() => new Response("{}", { status: 401 }));
  const refused = openStream("/v1/events");
  await new Promise<void>((done) => {
    refused.onerror = done;
  });
  const closed = openStream("/v1/events");
  let said = false;
  closed.onopen = closed.onerror = () => {
    said = true;
  };
  closed.close();
  await new Promise((done) => setTimeout(done, 20));
  expect(said).toBe(false);
});
