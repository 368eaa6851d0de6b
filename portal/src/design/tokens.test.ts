import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { STATES } from "./tokens";

const css = readFileSync(new URL("./tokens.css", import.meta.url), "utf8");

type Rgb = [number, number, number];

/** OKLCH to linear sRGB, clipped as browsers do roughly. */
function linear(l: number, c: number, h: number): Rgb {
  const a = c * Math.cos((h * Math.PI) / 180);
  const b = c * Math.sin((h * Math.PI) / 180);
  const l3 = (l + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m3 = (l - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const s3 = (l - 0.0894841775 * a - 1.291485548 * b) ** 3;
  const rgb: Rgb = [
    4.0767416621 * l3 - 3.3077115913 * m3 + 0.2309699292 * s3,
    -1.2684380046 * l3 + 2.6097574011 * m3 - 0.3413193965 * s3,
    -0.0041960863 * l3 - 0.7034186147 * m3 + 1.707614701 * s3,
  ];
  return rgb.map((v) => Math.min(1, Math.max(0, v))) as Rgb;
}

function luminance([r, g, b]: Rgb): number {
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

function theme(name: string): Map<string, number> {
  const block = css.slice(css.indexOf(`:root[data-theme="${name}"]`));
  const out = new Map<string, number>();
  for (const m of block
    .slice(0, block.indexOf("}"))
    .matchAll(/--([\w-]+): oklch\(([\d.]+) ([\d.]+) ([\d.]+)\);/g)) {
    const [, key, l, c, h] = m;
    out.set(key as string, luminance(linear(Number(l), Number(c), Number(h))));
  }
  // White is written without a hue that matters.
  for (const m of block.slice(0, block.indexOf("}")).matchAll(/--([\w-]+): oklch\(1 0 0\);/g))
    out.set(m[1] as string, 1);
  return out;
}

describe.each(["light", "dark"])("in the %s theme", (name) => {
  const t = theme(name);
  const contrast = (a: string, b: string) => {
    const [x, y] = [t.get(a), t.get(b)];
    if (x === undefined || y === undefined) throw new Error(`no ${x === undefined ? a : b}`);
    return (Math.max(x, y) + 0.05) / (Math.min(x, y) + 0.05);
  };
  const grounds = ["bg", "surface", "surface-2", "raised"];

  test.each(["text", "text-muted", "text-faint", "accent", "good", "warn", "bad"])(
    "%s can be read on every ground",
    (text) => {
      for (const g of grounds) expect(contrast(text, g), g).toBeGreaterThanOrEqual(4.5);
    },
  );
  test.each(STATES)("the state %s can be read on grounds and on its own tint", (s) => {
    for (const g of [...grounds, `state-${s}-soft`])
      expect(contrast(`state-${s}`, g), g).toBeGreaterThanOrEqual(4.5);
  });
  test("text on the accent and its tint can be read", () => {
    expect(contrast("accent-text", "accent")).toBeGreaterThanOrEqual(4.5);
    expect(contrast("accent-text", "accent-strong")).toBeGreaterThanOrEqual(4.5);
    expect(contrast("text", "accent-soft")).toBeGreaterThanOrEqual(4.5);
    expect(contrast("text-muted", "accent-soft")).toBeGreaterThanOrEqual(4.5);
    expect(contrast("text-faint", "accent-soft")).toBeGreaterThanOrEqual(4.5);
  });
  test("lines of charts and the focus can be seen", () => {
    for (let i = 1; i <= 8; i += 1)
      for (const g of ["bg", "surface"])
        expect(contrast(`series-${i}`, g), `${i}`).toBeGreaterThanOrEqual(3);
    for (const g of grounds) expect(contrast("focus", g)).toBeGreaterThanOrEqual(3);
  });
  test("the heat ramp goes one way", () => {
    const ramp = Array.from({ length: 9 }, (_, i) => t.get(`heat-${i}`) as number);
    const sign = name === "light" ? -1 : 1;
    for (let i = 1; i < 9; i += 1)
      expect(sign * ((ramp[i] as number) - (ramp[i - 1] as number))).toBeGreaterThan(0);
  });
});
