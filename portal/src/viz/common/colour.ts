// Colours as numbers: for pixels, and to hold contrast.

export type Rgb = readonly [number, number, number];

const known = new Map<string, Rgb>();
let probe: CanvasRenderingContext2D | null = null;

/** Any colour that CSS knows, as sRGB bytes. The browser converts it. */
export function rgbOf(css: string): Rgb {
  const hit = known.get(css);
  if (hit) return hit;
  const plain = parseHex(css);
  if (plain) {
    known.set(css, plain);
    return plain;
  }
  if (!probe) {
    const canvas = document.createElement("canvas");
    canvas.width = 1;
    canvas.height = 1;
    probe = canvas.getContext("2d", { willReadFrequently: true });
  }
  if (!probe) return [128, 128, 128];
  probe.clearRect(0, 0, 1, 1);
  probe.fillStyle = "#808080";
  probe.fillStyle = css;
  probe.fillRect(0, 0, 1, 1);
  const bytes = probe.getImageData(0, 0, 1, 1).data;
  const rgb: Rgb = [bytes[0] ?? 0, bytes[1] ?? 0, bytes[2] ?? 0];
  if (known.size > 4096) known.clear();
  known.set(css, rgb);
  return rgb;
}

export function parseHex(css: string): Rgb | null {
  const short = /^#([0-9a-f])([0-9a-f])([0-9a-f])$/i.exec(css);
  if (short) {
    const digit = (i: number) => Number.parseInt(short[i] ?? "0", 16) * 17;
    return [digit(1), digit(2), digit(3)];
  }
  const long = /^#([0-9a-f]{2})([0-9a-f]{2})([0-9a-f]{2})$/i.exec(css);
  if (!long) return null;
  const byte = (i: number) => Number.parseInt(long[i] ?? "0", 16);
  return [byte(1), byte(2), byte(3)];
}

export function cssOf([r, g, b]: Rgb): string {
  return `rgb(${Math.round(r)} ${Math.round(g)} ${Math.round(b)})`;
}

export function mix(a: Rgb, b: Rgb, part: number): Rgb {
  return [a[0] + (b[0] - a[0]) * part, a[1] + (b[1] - a[1]) * part, a[2] + (b[2] - a[2]) * part];
}

/** `part` of `colour` over `under`, as an opaque colour. */
export function tint(colour: string, under: string, part: number): string {
  return cssOf(mix(rgbOf(under), rgbOf(colour), part));
}

export function luminance([r, g, b]: Rgb): number {
  const linear = (byte: number) => {
    const c = byte / 255;
    return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  };
  return 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
}

export function contrast(a: Rgb, b: Rgb): number {
  const x = luminance(a);
  const y = luminance(b);
  return (Math.max(x, y) + 0.05) / (Math.min(x, y) + 0.05);
}

/** `colour`, moved towards black or white just so far that it can be read on `ground`. */
export function readable(colour: Rgb, ground: Rgb, least = 4.6): Rgb {
  if (contrast(colour, ground) >= least) return colour;
  const pole: Rgb = luminance(ground) > 0.18 ? [0, 0, 0] : [255, 255, 255];
  let low = 0;
  let high = 1;
  for (let i = 0; i < 12; i++) {
    const middle = (low + high) / 2;
    if (contrast(mix(colour, pole, middle), ground) >= least) high = middle;
    else low = middle;
  }
  return mix(colour, pole, high);
}

/** Black or white text, whichever reads better on `ground`; on what is in between, as the theme has it. */
export function textOn(ground: Rgb, theme?: "light" | "dark"): string {
  const [white, black] = [contrast([255, 255, 255], ground), contrast([12, 14, 18], ground)];
  const close = Math.max(white, black) / Math.min(white, black) < 1.5;
  const bright = close && theme ? theme === "light" : white >= black;
  return bright ? "#ffffff" : "#0c0e12";
}

const LITTLE_ENDIAN = new Uint8Array(new Uint32Array([1]).buffer)[0] === 1;

/** One opaque pixel of an ImageData, seen as Uint32Array. */
export function pixel([r, g, b]: Rgb): number {
  const [x, y, z] = [Math.round(r), Math.round(g), Math.round(b)];
  return LITTLE_ENDIAN
    ? ((255 << 24) | (z << 16) | (y << 8) | x) >>> 0
    : ((x << 24) | (y << 16) | (z << 8) | 255) >>> 0;
}

/** `steps` pixels from the first to the last stop. */
export function ramp(stops: readonly Rgb[], steps: number): Uint32Array {
  const out = new Uint32Array(steps);
  const last = stops.length - 1;
  for (let i = 0; i < steps; i++) {
    const at = steps === 1 ? 0 : (i / (steps - 1)) * last;
    const k = Math.min(Math.floor(at), Math.max(last - 1, 0));
    const a = stops[k] ?? [0, 0, 0];
    const b = stops[k + 1] ?? a;
    out[i] = pixel(mix(a, b, at - k));
  }
  return out;
}

/** As `ramp`, for fillStyle. */
export function rampCss(stops: readonly Rgb[], steps: number): string[] {
  const last = stops.length - 1;
  return Array.from({ length: steps }, (_, i) => {
    const at = steps === 1 ? 0 : (i / (steps - 1)) * last;
    const k = Math.min(Math.floor(at), Math.max(last - 1, 0));
    const a = stops[k] ?? ([0, 0, 0] as const);
    const b = stops[k + 1] ?? a;
    return cssOf(mix(a, b, at - k));
  });
}
