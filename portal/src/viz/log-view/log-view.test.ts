import { describe, expect, it } from "vitest";
import { indexed, parseAnsi, strip } from "./ansi";
import { copyText } from "./copy";
import { findLinks } from "./links";
import { expression, marks, matchPlain, matchRegex } from "./match";
import { pieces } from "./pieces";
import { endPlain, endWrapped, MOST_PIXELS, placeOf, rowsFor, scrollTopOf, spacer } from "./scroll";
import { Lines, Search } from "./search";
import { CHUNK, LogStore } from "./store";

const E = "\u001b";

describe("control sequences", () => {
  it("become styles where they are about looks", () => {
    const out = parseAnsi(`a${E}[1;31mred${E}[0m b ${E}[4munder${E}[24m`);
    expect(out.text).toBe("ared b under");
    expect(out.spans).toEqual([
      { start: 1, end: 4, style: { bold: true, fore: { kind: "named", index: 1 } } },
      { start: 7, end: 12, style: { underline: true } },
    ]);
  });
  it("know 256 colours and all colours, in both spellings", () => {
    const fore = (codes: string) => parseAnsi(`${E}[${codes}mx`).spans[0]?.style.fore;
    expect(fore("38;5;208")).toEqual({ kind: "rgb", rgb: [255, 135, 0] });
    expect(fore("38;2;1;2;3")).toEqual({ kind: "rgb", rgb: [1, 2, 3] });
    expect(fore("38:2::1:2:3")).toEqual({ kind: "rgb", rgb: [1, 2, 3] });
    expect(fore("97")).toEqual({ kind: "named", index: 15 });
    expect(indexed(244)).toEqual({ kind: "rgb", rgb: [128, 128, 128] });
  });
  it("survive nonsense", () => {
    for (const bad of ["38;5", "38;5;999", "38", "38;2;1", "999999999999", ";;;", "38;5;", "1;"]) {
      expect(parseAnsi(`${E}[${bad}mx`).text).toBe("x");
    }
    expect(parseAnsi(`x${E}`).text).toBe("x");
    expect(parseAnsi(`x${E}[`).text).toBe("x");
    expect(parseAnsi(`${E}[31`).text).toBe("");
  });
  it("have no other effect, whatever they are", () => {
    const bad = [
      `${E}]0;title\u0007`,
      `${E}]8;;https://evil.example\u0007`,
      `${E}]52;c;AAAA${E}\\`,
      `${E}[2J`,
      `${E}[1;1H`,
      `${E}[?1049h`,
      `${E}Pq#0;2;0;0;0${E}\\`,
      `${E}_apc${E}\\`,
      `${E}(B`,
      `${E}c`,
      "\u009b31m\u009b0m",
      "\u0000\u0008\u007f\u0085",
      "\u202e",
      "\u2066",
    ];
    expect(strip(`a${bad.join("")}b`)).toBe("ab");
    expect(parseAnsi(`a${bad.join("")}b`).text).toBe("ab");
  });
  it("leave tabs, other scripts and emoji alone", () => {
    expect(parseAnsi("a\tשלום 日本 🚢").text).toBe("a\tשלום 日本 🚢");
  });
  it("take time in proportion to the line", () => {
    expect(strip(`${E}]`.repeat(50_000)).length).toBe(0);
    expect(strip(`${E}[${"1;".repeat(50_000)}m`)).toBe("");
  });
});

describe("links", () => {
  const found = (text: string) => findLinks(text).map((l) => text.slice(l.start, l.end));
  it("end before the marks that follow them", () => {
    expect(found("see https://a.example/x, (https://b.example/y_(z)). <http://c.example>")).toEqual(
      ["https://a.example/x", "https://b.example/y_(z)", "http://c.example"],
    );
  });
  it("are only of the web, and lead where they say", () => {
    expect(
      found("javascript://a.example/%0aalert(1) file:///etc/passwd data://x ftp://a.example"),
    ).toEqual([]);
    expect(found("https://bank.example@evil.example/ https://")).toEqual([]);
  });
});

describe("pieces", () => {
  it("keep markup as text", () => {
    const [run] = pieces("<img src=x onerror=alert(1)>", null);
    expect(run).toEqual({
      href: null,
      pieces: [{ text: "<img src=x onerror=alert(1)>", style: null, mark: false }],
    });
  });
  it("overlap styles, links and marks", () => {
    const runs = pieces(`${E}[31mgo https://a.example/b${E}[0m now`, /a\.example/gi);
    expect(
      runs.map((r) => [
        r.href,
        r.pieces.map((p) => `${p.text}${p.mark ? "*" : ""}${p.style ? "!" : ""}`),
      ]),
    ).toEqual([
      [null, ["go !"]],
      ["https://a.example/b", ["https://!", "a.example*!", "/b!"]],
      [null, [" now"]],
    ]);
  });
});

describe("the store", () => {
  const numbered = (n: number, from = 0) => Array.from({ length: n }, (_, i) => `line ${from + i}`);
  it("gives back what was put in, across chunks", () => {
    const store = new LogStore();
    store.append(numbered(CHUNK * 2 + 10));
    expect(store.count).toBe(CHUNK * 2 + 10);
    for (const n of [0, 1, CHUNK - 1, CHUNK, CHUNK * 2, CHUNK * 2 + 9]) {
      expect(store.line(n)?.text).toBe(`line ${n}`);
      expect(store.lengthOf(n)).toBe(`line ${n}`.length);
    }
    expect(store.line(CHUNK * 2 + 10)).toBeNull();
  });
  it("keeps times and ranks, and knows where there are none", () => {
    const store = new LogStore();
    store.append([{ text: "a", at: 5, rank: 2 }, "b"]);
    store.append(numbered(CHUNK));
    expect(store.line(0)).toEqual({ text: "a", at: 5, rank: 2 });
    expect(store.line(1)).toEqual({ text: "b", at: undefined, rank: undefined });
    expect([store.timed, store.ranked]).toEqual([true, true]);
  });
  it("drops the oldest lines at its limit and keeps their numbers", () => {
    const store = new LogStore({ lines: CHUNK * 2 });
    store.append(numbered(CHUNK * 4 + 5));
    expect(store.count).toBeLessThanOrEqual(CHUNK * 2);
    expect(store.dropped).toBe(store.first);
    expect(store.line(0)).toBeNull();
    expect(store.line(store.first)?.text).toBe(`line ${store.first}`);
    expect(store.line(CHUNK * 4 + 4)?.text).toBe(`line ${CHUNK * 4 + 4}`);
  });
  it("limits memory by characters and the length of a line", () => {
    const store = new LogStore({ characters: 2_000_000, line: 100 });
    for (let i = 0; i < 20; i++) store.append(numbered(CHUNK).map((t) => t.padEnd(300, "x")));
    expect(store.characters).toBeLessThan(2_000_000 + CHUNK * 200);
    expect(store.line(store.first)?.text).toContain("more characters");
  });
  it("shows of an overwritten line what stands last", () => {
    const store = new LogStore();
    store.append(["10 %\r50 %\r100 %\r", "a\r\nb\n", "c\n"]);
    expect([0, 1, 2, 3].map((n) => store.line(n)?.text)).toEqual(["100 %", "a", "b", "c"]);
  });
  it("tells listeners once a batch", () => {
    const store = new LogStore();
    let told = 0;
    const stop = store.subscribe(() => told++);
    store.append(numbered(10));
    store.clear();
    stop();
    store.append(["x"]);
    expect(told).toBe(2);
    expect(store.first).toBe(0);
  });
});

describe("search", () => {
  const text = "one\nTwo two\n\nthree two\n";
  it("finds lines, each once", () => {
    expect(matchPlain(text, "two", false, 10)).toEqual([11, 13]);
    expect(matchPlain(text, "two", true, 10)).toEqual([11, 13]);
    expect(matchPlain(text, "Two", true, 10)).toEqual([11]);
    expect(matchPlain(text, "", false, 0)).toEqual([]);
    expect(matchPlain("İ\nab\n", "AB", false, 0)).toEqual([1]);
  });
  it("finds by expressions, each line by itself", () => {
    expect(matchRegex(text, /^t.*two$/gim, 0)).toEqual([1, 3]);
    expect(matchRegex(text, /o\nT/g, 0)).toEqual([]);
  });
  it("says what is wrong with an expression", () => {
    expect(expression({ text: "([", regex: true, matchCase: false })).toBe(
      "Unterminated character class",
    );
    expect(expression({ text: "([", regex: false, matchCase: false })).toBeInstanceOf(RegExp);
  });
  it("marks every place, but not nothing", () => {
    expect(marks("abab", /b/g)).toEqual([
      { start: 1, end: 2 },
      { start: 3, end: 4 },
    ]);
    expect(marks("abab", /x*/g)).toEqual([]);
  });
  it("goes through all chunks, through colours, and on with new lines", async () => {
    const store = new LogStore();
    store.append(
      Array.from({ length: CHUNK * 3 }, (_, i) =>
        i % 1000 === 0 ? `${E}[31mer${E}[1mror${E}[0m ${i}` : `fine ${i}`,
      ),
    );
    const search = new Search(store, { text: "ERROR", regex: false, matchCase: false }, () => {});
    await search.run();
    expect(search.found.done).toBe(true);
    expect(search.found.lines.length).toBe(13);
    expect(search.found.lines.at(1)).toBe(1000);
    store.append(["error again", "fine"]);
    await search.run();
    expect(search.found.lines.length).toBe(14);
    expect(search.found.lines.at(13)).toBe(CHUNK * 3);
    store.clear();
    store.append(["an error"]);
    await search.run();
    expect([search.found.lines.length, search.found.lines.at(0)]).toEqual([1, 0]);
  });
  it("keeps found numbers sorted and forgets dropped ones", () => {
    const lines = new Lines();
    lines.push(Array.from({ length: 3000 }, (_, i) => i * 2));
    expect([lines.from(0), lines.from(3), lines.from(99_999)]).toEqual([0, 2, 3000]);
    lines.dropBefore(100);
    expect([lines.length, lines.at(0)]).toEqual([2950, 100]);
  });
});

describe("scrolling", () => {
  it("is exact while the browser can be", () => {
    const e = { count: 1000, row: 18, room: 360, end: endPlain(1000, 18, 360) };
    expect(spacer(e)).toBe(18_000);
    expect(placeOf(180, e)).toBeCloseTo(10);
    expect(placeOf(17_640, e)).toBe(980);
  });
  it("reaches every line of ten million", () => {
    const e = { count: 1e7, row: 18, room: 360, end: endPlain(1e7, 18, 360) };
    expect(spacer(e)).toBe(MOST_PIXELS + 360);
    expect(placeOf(spacer(e) - e.room, e)).toBe(e.end);
    expect(placeOf(scrollTopOf(1234.5, e), e)).toBeCloseTo(1234.5);
  });
  it("ends with the last wrapped line at the edge", () => {
    expect(endWrapped(10, 18, 90, () => 1)).toBe(5);
    expect(endWrapped(10, 18, 90, () => 2)).toBeCloseTo(7.5);
    expect(endWrapped(2, 18, 90, () => 1)).toBe(0);
    expect(endWrapped(0, 18, 90, () => 1)).toBe(0);
  });
  it("counts rows of a wrapped line", () => {
    expect([0, 80, 81, 400].map((n) => rowsFor(n, 80))).toEqual([1, 1, 2, 5]);
  });
});

describe("copies", () => {
  const store = new LogStore();
  store.append([
    { text: `${E}[31mred${E}[0m`, at: 0, rank: 3 },
    { text: "plain", at: 1500 },
  ]);
  it("are plain, or have times", () => {
    expect(copyText(store, { from: 0, to: 2 }, false).text).toBe("red\nplain\n");
    expect(copyText(store, { from: 0, to: 2 }, true).text).toBe(
      "1970-01-01T00:00:00.000Z r3 red\n1970-01-01T00:00:01.500Z plain\n",
    );
  });
});
