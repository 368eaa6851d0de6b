// A line with control sequences as plain text and styles. Pure.
//
// Only SGR (colours and weights) has an effect. Everything else a terminal would obey is taken out,
// so that a log can neither move, hide nor forge what is around it.

export type Colour =
  | { kind: "named"; index: number }
  | { kind: "rgb"; rgb: [number, number, number] };

export interface Style {
  fore?: Colour | undefined;
  back?: Colour | undefined;
  bold?: boolean | undefined;
  dim?: boolean | undefined;
  italic?: boolean | undefined;
  underline?: boolean | undefined;
  strike?: boolean | undefined;
  inverse?: boolean | undefined;
}

export interface Span {
  start: number;
  end: number;
  style: Style;
}

export interface Parsed {
  text: string;
  /** Only stretches that are styled. */
  spans: Span[];
}

// CSI and OSC and the other strings; then whatever else begins with ESC, and lone control characters.
const SEQUENCES =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: it is about control characters
  /(?:\u001b\[|\u009b)[0-?]*[ -/]*[@-~]?|(?:\u001b\]|\u009d)[^\u0007\u001b\u009c]*(?:\u0007|\u001b\\|\u009c)?|(?:\u001b[PX^_]|[\u0090\u0098\u009e\u009f])[^\u001b\u009c]*(?:\u001b\\|\u009c)?|\u001b[ -/]*[0-~]?|[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g;
// Characters that turn the direction of what follows could make a line read as something else.
const TURNS = /[\u202a-\u202e\u2066-\u2069]/g;

/** The text without any control sequence; line feeds stay. */
export function strip(text: string): string {
  return text.replace(SEQUENCES, "").replace(TURNS, "");
}

export function isPlain(text: string): boolean {
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code < 32 ? code !== 9 : code >= 127 && code <= 159) return false;
    if (code >= 0x202a && (code <= 0x202e || (code >= 0x2066 && code <= 0x2069))) return false;
  }
  return true;
}

export function parseAnsi(line: string): Parsed {
  if (isPlain(line)) return { text: line, spans: [] };
  const spans: Span[] = [];
  let text = "";
  let style: Style = {};
  let styled = false;
  let start = 0;
  const put = (part: string) => {
    text += part.replace(TURNS, "");
  };
  const end = () => {
    if (styled && text.length > start) spans.push({ start, end: text.length, style });
    start = text.length;
  };
  let from = 0;
  SEQUENCES.lastIndex = 0;
  for (let m = SEQUENCES.exec(line); m; m = SEQUENCES.exec(line)) {
    put(line.slice(from, m.index));
    from = m.index + m[0].length;
    const parameters = sgr(m[0]);
    if (parameters === null) continue;
    end();
    style = apply(style, parameters);
    styled = Object.keys(style).length > 0;
  }
  put(line.slice(from));
  end();
  return { text, spans };
}

/** The parameters of an SGR sequence; null for any other. */
function sgr(sequence: string): number[] | null {
  const long = sequence.startsWith("\u001b[") ? 2 : sequence.startsWith("\u009b") ? 1 : 0;
  if (long === 0) return null;
  if (!sequence.endsWith("m")) return null;
  const body = sequence.slice(long, -1);
  if (!/^[0-9;:]*$/.test(body)) return null;
  // 38:2::r:g:b has a place for a colour space, which nothing fills.
  const flat = body.replace(/([34]8):2:\d*:(\d+:\d+:\d+)/g, "$1:2:$2");
  return flat.split(/[;:]/).map((n) => (n === "" ? 0 : Math.min(Number.parseInt(n, 10), 999)));
}

function apply(old: Style, codes: readonly number[]): Style {
  let s: Style = { ...old };
  for (let i = 0; i < codes.length; i++) {
    const n = codes[i] as number;
    if (n === 0) s = {};
    else if (n === 1) s.bold = true;
    else if (n === 2) s.dim = true;
    else if (n === 3) s.italic = true;
    else if (n === 4) s.underline = true;
    else if (n === 7) s.inverse = true;
    else if (n === 9) s.strike = true;
    else if (n === 22) {
      delete s.bold;
      delete s.dim;
    } else if (n === 23) delete s.italic;
    else if (n === 24) delete s.underline;
    else if (n === 27) delete s.inverse;
    else if (n === 29) delete s.strike;
    else if (n >= 30 && n <= 37) s.fore = { kind: "named", index: n - 30 };
    else if (n >= 90 && n <= 97) s.fore = { kind: "named", index: n - 82 };
    else if (n === 39) delete s.fore;
    else if (n >= 40 && n <= 47) s.back = { kind: "named", index: n - 40 };
    else if (n >= 100 && n <= 107) s.back = { kind: "named", index: n - 92 };
    else if (n === 49) delete s.back;
    else if (n === 38 || n === 48) {
      const [colour, used] = extended(codes, i + 1);
      i += used;
      if (!colour) continue;
      if (n === 38) s.fore = colour;
      else s.back = colour;
    }
  }
  return s;
}

function extended(codes: readonly number[], i: number): [Colour | null, number] {
  if (codes[i] === 5) {
    const n = codes[i + 1];
    return [n === undefined || n > 255 ? null : indexed(n), 2];
  }
  if (codes[i] === 2) {
    const byte = (k: number) => Math.min(255, codes[i + k] ?? 0);
    return [{ kind: "rgb", rgb: [byte(1), byte(2), byte(3)] }, 4];
  }
  return [null, 1];
}

/** One of the 256 colours: 16 by name, a cube of 216, 24 greys. */
export function indexed(n: number): Colour {
  if (n < 16) return { kind: "named", index: n };
  if (n >= 232) {
    const grey = 8 + (n - 232) * 10;
    return { kind: "rgb", rgb: [grey, grey, grey] };
  }
  const level = (k: number) => (k === 0 ? 0 : 55 + k * 40);
  const at = n - 16;
  return {
    kind: "rgb",
    rgb: [level(Math.floor(at / 36)), level(Math.floor(at / 6) % 6), level(at % 6)],
  };
}
