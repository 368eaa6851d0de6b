// From the scroll bar to lines and back. Pure.
//
// Browsers stop at some ten million pixels, and wrapped lines have no known height. So the place is
// a line and a part of it; the bar only stands for it.

export interface Extent {
  /** Lines that can be shown. */
  count: number;
  /** Pixels of one row. */
  row: number;
  /** Pixels that are seen. */
  room: number;
  /** The place at which the last line ends at the lower edge. */
  end: number;
}

export const MOST_PIXELS = 8_000_000;

/** Without wrapping, every line is one row. */
export function endPlain(count: number, row: number, room: number): number {
  return Math.max(0, count - room / row);
}

/** With wrapping: from the last line back until the room is full. */
export function endWrapped(
  count: number,
  row: number,
  room: number,
  rowsOf: (index: number) => number,
): number {
  let left = room / row;
  for (let i = count - 1; i >= 0; i--) {
    const rows = rowsOf(i);
    if (rows >= left) return i + (rows - left) / rows;
    left -= rows;
  }
  return 0;
}

/** How tall the content is for the browser. */
export function spacer(e: Extent): number {
  return Math.min(e.end * e.row, MOST_PIXELS) + e.room;
}

export function placeOf(scrollTop: number, e: Extent): number {
  const most = spacer(e) - e.room;
  if (most <= 0) return 0;
  // The bar's last pixel is the end, however the browser rounds.
  if (scrollTop >= most - 1) return e.end;
  return (Math.max(0, scrollTop) / most) * e.end;
}

export function scrollTopOf(place: number, e: Extent): number {
  if (e.end <= 0) return 0;
  return (Math.min(Math.max(place, 0), e.end) / e.end) * (spacer(e) - e.room);
}

/** Rows that a line takes when it is wrapped: every character is as wide as any other. */
export function rowsFor(length: number, columns: number): number {
  return Math.max(1, Math.ceil(length / Math.max(1, columns)));
}
