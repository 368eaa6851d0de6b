/** `name = 'chat'`. The grammar of MLflow's searches has no escapes. */
export function nameFilter(name: string): string {
  // A name with both quotes cannot be quoted. `_` matches any character.
  if (!name.includes("'")) return `name = '${name}'`;
  if (!name.includes('"')) return `name = "${name}"`;
  return `name LIKE '${name.replaceAll("'", "_")}'`;
}
