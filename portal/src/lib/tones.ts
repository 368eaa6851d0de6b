/** More teams than hues: then those of a page share them out anew. */
const HUES = 8;

/**
 * Teams in the order of their colours. A team has the same colour on all pages, as long as there are
 * no more teams than hues.
 */
export function teamOrder(all: readonly string[], here: readonly string[]): string[] {
  const every = [...new Set([...all, ...here])].sort();
  return every.length <= HUES ? every : [...new Set(here)].sort();
}
