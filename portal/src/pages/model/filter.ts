/** `name = 'chat'`, in the grammar of MLflow's searches, which knows no escapes. */
export function nameFilter(name: string): string {
  // With both quotes in it no text can say it: `_` stands for any one letter.
  if (!name.includes("'")) return `name = '${name}'`;
  if (!name.includes('"')) return `name = "${name}"`;
  return `name LIKE '${name.replaceAll("'", "_")}'`;
}
