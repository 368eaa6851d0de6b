import { describe, expect, it } from "vitest";
import { fitted, LEAST, MOST, moved, opening, showing, zoomed } from "./view";

const frame = { width: 800, height: 400 };

describe("the part that is seen", () => {
  it("shows a small drawing whole, centred and not enlarged", () => {
    expect(fitted({ width: 200, height: 100 }, frame)).toEqual({ k: 1, x: 300, y: 150 });
  });

  it("shows a readable part of a large drawing, around the start", () => {
    const view = opening({ width: 8000, height: 300 }, frame, { x: 5000, y: 100 });
    expect(view.k).toBeGreaterThan(0.8);
    expect(view.x + 5000 * view.k).toBeCloseTo(400);
    // The axis that fits is centred.
    expect(view.y + 150 * view.k).toBeCloseTo(200);
    const first = opening({ width: 8000, height: 300 }, frame, { x: 0, y: 100 });
    expect(first.x).toBe(24);
  });

  it("zooms around the pointer, within limits", () => {
    const at = { x: 130, y: 70 };
    const before = { k: 1, x: 20, y: 30 };
    const after = zoomed(before, 1.5, at);
    expect((at.x - after.x) / after.k).toBeCloseTo((at.x - before.x) / before.k);
    expect(zoomed(before, 100, at).k).toBe(MOST);
    expect(zoomed(before, 0.0001, at).k).toBe(LEAST);
  });

  it("keeps a part of the drawing visible", () => {
    const drawing = { width: 500, height: 100 };
    const view = moved({ k: 1, x: 0, y: 0 }, -9999, 9999, drawing, frame);
    expect(view.x + drawing.width).toBeGreaterThan(0);
    expect(view.y).toBeLessThan(frame.height);
  });

  it("moves to the focused node only if it is hidden", () => {
    const view = { k: 1, x: 0, y: 0 };
    const box = { x: 1000, y: 100, width: 196, height: 44 };
    const there = showing(view, box, frame);
    expect(there.x + box.x + box.width).toBeLessThanOrEqual(frame.width);
    expect(there.y).toBe(0);
    expect(showing(there, box, frame)).toEqual(there);
  });
});
