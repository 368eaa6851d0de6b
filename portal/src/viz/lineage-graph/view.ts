// The visible part of the drawing: its corner and its scale. Pure.

export interface View {
  x: number;
  y: number;
  k: number;
}

export interface Size {
  width: number;
  height: number;
}

export const LEAST = 0.15;
export const MOST = 2;
/** Below this scale text is unreadable, so show a part instead of the whole. */
const READABLE = 0.85;
const MARGIN = 24;

const within = (n: number, least: number, most: number) => Math.min(most, Math.max(least, n));

/** The view in which the whole drawing fits. */
export function fitted(drawing: Size, frame: Size): View {
  const k = within(
    Math.min(
      (frame.width - 2 * MARGIN) / Math.max(1, drawing.width),
      (frame.height - 2 * MARGIN) / Math.max(1, drawing.height),
    ),
    LEAST,
    1,
  );
  return {
    k,
    x: (frame.width - drawing.width * k) / 2,
    y: (frame.height - drawing.height * k) / 2,
  };
}

/** The whole drawing if it is readable, else a readable part around the start. */
export function opening(drawing: Size, frame: Size, middle: { x: number; y: number }): View {
  const all = fitted(drawing, frame);
  if (all.k >= READABLE) return all;
  const k = READABLE;
  // Centre an axis that fits; otherwise align it with the margin.
  const start = (length: number, room: number, at: number) =>
    length * k <= room - 2 * MARGIN
      ? (room - length * k) / 2
      : within(room / 2 - at * k, room - MARGIN - length * k, MARGIN);
  return {
    k,
    x: start(drawing.width, frame.width, middle.x),
    y: start(drawing.height, frame.height, middle.y),
  };
}

/** Zooms around a fixed point of the frame. */
export function zoomed(view: View, by: number, at: { x: number; y: number }): View {
  const k = within(view.k * by, LEAST, MOST);
  const ratio = k / view.k;
  return { k, x: at.x - (at.x - view.x) * ratio, y: at.y - (at.y - view.y) * ratio };
}

/** Pans, but keeps a part of the drawing visible. */
export function moved(view: View, dx: number, dy: number, drawing: Size, frame: Size): View {
  const keep = 80;
  return {
    k: view.k,
    x: within(view.x + dx, keep - drawing.width * view.k, frame.width - keep),
    y: within(view.y + dy, keep - drawing.height * view.k, frame.height - keep),
  };
}

/** Pans the minimum that makes a box visible. */
export function showing(view: View, box: { x: number; y: number } & Size, frame: Size): View {
  const shift = (start: number, length: number, room: number) => {
    if (start < MARGIN) return MARGIN - start;
    const over = start + length - (room - MARGIN);
    return over > 0 ? Math.max(-over, MARGIN - start) : 0;
  };
  const { k } = view;
  return {
    k,
    x: view.x + shift(view.x + box.x * k, box.width * k, frame.width),
    y: view.y + shift(view.y + box.y * k, box.height * k, frame.height),
  };
}
