// From a line and a column, as the API has them, to the word that is marked. Pure.

export function position(
  lineAt: (line: number) => { from: number; text: string },
  lines: number,
  line: number,
  column: number,
): { from: number; to: number } {
  const found = lineAt(Math.min(Math.max(1, line), lines));
  const start = Math.min(Math.max(0, column - 1), found.text.length);
  const word = /^[^\s:,[\]{}]+/.exec(found.text.slice(start));
  if (word) return { from: found.from + start, to: found.from + start + word[0].length };
  // Nothing is there: mark the line's text instead, so that something is seen.
  const first = found.text.length - found.text.trimStart().length;
  const end = found.text.trimEnd().length;
  if (start < end) return { from: found.from + start, to: found.from + start + 1 };
  return { from: found.from + Math.min(first, end), to: found.from + end };
}
