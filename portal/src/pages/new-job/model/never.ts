/** Reasons that no waiting takes away; docs/reasons.md, "Would not start on an empty cluster". */
export const NEVER: ReadonlySet<string> = new Set([
  "dependency-never",
  "gpu-memory",
  "no-label",
  "no-lifecycle",
  "no-model",
  "no-node",
  "no-profile",
  "tainted",
  "too-large",
  "too-large-counted",
  "too-large-cpu",
  "too-large-for-domain",
  "too-large-memory",
]);
