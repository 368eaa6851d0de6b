// What every canvas needs: sharp pixels, hatching, clipped text, one redraw a frame.

import { type RefObject, useEffect, useLayoutEffect, useState } from "react";

export interface Size {
  width: number;
  height: number;
}

export function pixelRatio(): number {
  return Math.min(globalThis.devicePixelRatio || 1, 3);
}

/** Sizes the canvas in device pixels; afterwards one unit is one CSS pixel. */
export function fit(
  canvas: HTMLCanvasElement,
  width: number,
  height: number,
): CanvasRenderingContext2D | null {
  const ratio = pixelRatio();
  const w = Math.max(1, Math.round(width * ratio));
  const h = Math.max(1, Math.round(height * ratio));
  if (canvas.width !== w) canvas.width = w;
  if (canvas.height !== h) canvas.height = h;
  const css = { width: `${width}px`, height: `${height}px` };
  if (canvas.style.width !== css.width) canvas.style.width = css.width;
  if (canvas.style.height !== css.height) canvas.style.height = css.height;
  const context = canvas.getContext("2d");
  context?.setTransform(ratio, 0, 0, ratio, 0, 0);
  return context;
}

/** Follows the size of an element, and the pixel ratio of its screen. */
export function useSize(ref: RefObject<HTMLElement | null>): Size {
  const [size, setSize] = useState<Size>({ width: 0, height: 0 });
  useLayoutEffect(() => {
    const element = ref.current;
    if (!element) return;
    const measure = () => {
      const width = element.clientWidth;
      const height = element.clientHeight;
      setSize((old) => (old.width === width && old.height === height ? old : { width, height }));
    };
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    return () => observer.disconnect();
  }, [ref]);
  return size;
}

/** Changes whenever a canvas has to be drawn anew: another pixel ratio, or a font that came late. */
export function useRedraw(): string {
  const [ratio, setRatio] = useState(pixelRatio);
  const [fonts, setFonts] = useState(0);
  useEffect(() => {
    const query = matchMedia(`(resolution: ${ratio}dppx)`);
    const changed = () => setRatio(pixelRatio());
    query.addEventListener("change", changed);
    return () => query.removeEventListener("change", changed);
  }, [ratio]);
  useEffect(() => {
    const loaded = () => {
      rulers.clear();
      setFonts((n) => n + 1);
    };
    document.fonts.addEventListener("loadingdone", loaded);
    return () => document.fonts.removeEventListener("loadingdone", loaded);
  }, []);
  return `${ratio}/${fonts}`;
}

const hatches = new Map<string, HTMLCanvasElement>();

/** Diagonal lines of a colour on nothing, as a pattern in CSS pixels. */
export function hatch(
  context: CanvasRenderingContext2D,
  colour: string,
  step = 6,
  width = 1,
): CanvasPattern | string {
  const ratio = pixelRatio();
  const key = `${colour}|${step}|${width}|${ratio}`;
  let tile = hatches.get(key);
  if (!tile) {
    const side = Math.round(step * ratio);
    tile = document.createElement("canvas");
    tile.width = side;
    tile.height = side;
    const brush = tile.getContext("2d");
    if (!brush) return colour;
    brush.strokeStyle = colour;
    brush.lineWidth = width * ratio;
    brush.beginPath();
    for (const shift of [-side, 0, side]) {
      brush.moveTo(shift - 1, side + 1);
      brush.lineTo(shift + side + 1, -1);
    }
    brush.stroke();
    if (hatches.size > 64) hatches.clear();
    hatches.set(key, tile);
  }
  const pattern = context.createPattern(tile, "repeat");
  if (!pattern) return colour;
  pattern.setTransform(new DOMMatrix().scale(1 / ratio));
  return pattern;
}

/** Widths of characters in one font: adding them up is much faster than asking for each text. */
class Ruler {
  #context: CanvasRenderingContext2D;
  #font: string;
  #ascii = new Float64Array(128).fill(-1);
  #others = new Map<string, number>();
  constructor(context: CanvasRenderingContext2D, font: string) {
    this.#context = context;
    this.#font = font;
  }
  #measure(character: string): number {
    this.#context.font = this.#font;
    return this.#context.measureText(character).width;
  }
  of(text: string): number {
    let width = 0;
    for (let i = 0; i < text.length; i++) {
      const code = text.charCodeAt(i);
      if (code >= 128) return this.#whole(text);
      let one = this.#ascii[code] as number;
      if (one < 0) {
        one = this.#measure(text[i] as string);
        this.#ascii[code] = one;
      }
      width += one;
    }
    return width;
  }
  /** Other scripts join their characters: only the whole text has a width. */
  #whole(text: string): number {
    let width = this.#others.get(text);
    if (width === undefined) {
      width = this.#measure(text);
      if (this.#others.size > 5000) this.#others.clear();
      this.#others.set(text, width);
    }
    return width;
  }
}

const rulers = new Map<string, Ruler>();
let plumb: CanvasRenderingContext2D | null = null;

function rulerOf(font: string): Ruler | null {
  plumb ??= document.createElement("canvas").getContext("2d");
  if (!plumb) return null;
  let ruler = rulers.get(font);
  if (!ruler) {
    ruler = new Ruler(plumb, font);
    rulers.set(font, ruler);
  }
  return ruler;
}

/** Measures in one font. Not in the context's own: asking a context for its font is slow. */
export function measurer(font: string): (text: string) => number {
  const ruler = rulerOf(font);
  return ruler ? (text) => ruler.of(text) : (text) => text.length * 7;
}

/** The text cut to `room` pixels with an ellipsis; empty where not even two letters fit. */
export function clip(text: string, room: number, widthOf: (text: string) => number): string {
  if (room <= 0) return "";
  const whole = widthOf(text);
  if (whole <= room) return text;
  const space = room - widthOf("…");
  // A guess that is right for even characters, and then a step or two.
  let length = Math.min(text.length - 1, Math.max(0, Math.floor((space / whole) * text.length)));
  while (length > 0 && widthOf(text.slice(0, length)) > space) length--;
  while (length < text.length - 1 && widthOf(text.slice(0, length + 1)) <= space) length++;
  return length < 2 ? "" : `${text.slice(0, length).trimEnd()}…`;
}

/** Runs `draw` at most once a frame, however often it is asked for. */
export class Frame {
  #id = 0;
  #draw: () => void;
  constructor(draw: () => void) {
    this.#draw = draw;
  }
  ask(): void {
    if (this.#id) return;
    this.#id = requestAnimationFrame(() => {
      this.#id = 0;
      this.#draw();
    });
  }
  cancel(): void {
    cancelAnimationFrame(this.#id);
    this.#id = 0;
  }
}

export function point(event: { clientX: number; clientY: number }, element: Element) {
  const box = element.getBoundingClientRect();
  return { x: event.clientX - box.left, y: event.clientY - box.top };
}

/** The width of the widest of some texts. */
export function widest(texts: Iterable<string>, font: string): number {
  const ruler = rulerOf(font);
  let most = 0;
  if (ruler) for (const text of texts) most = Math.max(most, ruler.of(text));
  return most;
}
