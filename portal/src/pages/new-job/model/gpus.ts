import type { Value } from "./doc";

/** What `gpus` asks of each node, in the parts that the form has. docs/job-file.md has the grammar. */
export type GpuKind = "whole" | "part" | "mig" | "shared";

export interface GpuWish {
  kind: GpuKind;
  /** A number as it is written; of a part also an amount of memory: `0.5`, `10GB`. */
  amount: string;
  /** `1g.10gb`. */
  profile: string;
  /** Accepted models, best first; none: any. Or one `24GB+`. */
  models: string[];
}

export const ANY: GpuWish = { kind: "whole", amount: "0", profile: "", models: [] };

/** Nothing where the form has no fields for it: alternatives that differ in more than the model. */
export function readGpus(value: Value | undefined): GpuWish | undefined {
  if (value === undefined) return ANY;
  const texts = typeof value === "string" ? [value] : value;
  if (!Array.isArray(texts) || texts.length === 0) return undefined;
  let all: GpuWish | undefined;
  for (const text of texts) {
    if (typeof text !== "string") return undefined;
    const one = readChoice(text.trim());
    if (!one) return undefined;
    if (!all) all = one;
    else if (one.kind !== all.kind || one.amount !== all.amount || one.profile !== all.profile)
      return undefined;
    else if (one.models.length !== 1 || all.models.length === 0) return undefined;
    else all = { ...all, models: [...all.models, ...one.models] };
  }
  return all;
}

const NUMBER = /^\d*\.?\d+$/;
const MEMORY = /^\d+(\.\d+)?\s?[kMGTP]i?B$/i;
const MODEL = /^[A-Za-z][\w.-]*$/;

function readChoice(text: string): GpuWish | undefined {
  const amount = readAmount(text);
  if (amount) return { ...amount, profile: "", models: [] };
  const colon = text.indexOf(":");
  const which = colon < 0 ? text : text.slice(0, colon);
  const rest = colon < 0 ? undefined : text.slice(colon + 1);
  const slash = which.indexOf("/");
  const name = slash < 0 ? which : which.slice(0, slash);
  const piece = slash < 0 ? undefined : which.slice(slash + 1);
  const shared = piece === "shared" || (piece === undefined && name === "shared");
  const models = shared && piece === undefined ? [] : [name];
  if (models.length > 0 && !MODEL.test(name) && !isLeast(name)) return undefined;
  if (shared) return { kind: "shared", amount: rest ?? "1", profile: "", models };
  if (piece !== undefined)
    return piece ? { kind: "mig", amount: rest ?? "1", profile: piece, models } : undefined;
  const counted = readAmount(rest ?? "1");
  return counted && { ...counted, profile: "", models };
}

function readAmount(text: string): Pick<GpuWish, "kind" | "amount"> | undefined {
  if (MEMORY.test(text)) return { kind: "part", amount: text };
  if (!NUMBER.test(text)) return undefined;
  const n = Number(text);
  return { kind: n > 0 && n < 1 ? "part" : "whole", amount: text };
}

/** `24GB+`: any model with at least that much. */
export function isLeast(model: string): boolean {
  return model.endsWith("+") && MEMORY.test(model.slice(0, -1));
}

/** As short as the grammar allows. */
export function writeGpus(wish: GpuWish): Value | undefined {
  const { kind, profile, models } = wish;
  const amount = wish.amount.trim();
  if (kind === "whole" && models.length === 0)
    return amount === "" || amount === "0" ? undefined : amount;
  const one = (model: string): string => {
    const count = amount === "" || amount === "1" ? "" : `:${amount}`;
    switch (kind) {
      case "whole":
        return `${model}${count}`;
      case "part":
        return model ? `${model}:${amount || "0.5"}` : amount || "0.5";
      case "mig":
        return `${model}/${profile || "1g.10gb"}${count}`;
      case "shared":
        return model ? `${model}/shared${count}` : `shared${count}`;
    }
  };
  const texts = (models.length > 0 ? models : [""]).map(one);
  return texts.length === 1 ? texts[0] : texts;
}

/** Instances that NVIDIA's tools make on these models. */
export function profilesOf(model: string): string[] {
  if (/^A30/i.test(model)) return ["1g.6gb", "2g.12gb", "4g.24gb"];
  if (/^A100(-SXM4)?-40GB|^A100-PCIE-40GB/i.test(model))
    return ["1g.5gb", "2g.10gb", "3g.20gb", "4g.20gb", "7g.40gb"];
  if (/^H200/i.test(model)) return ["1g.18gb", "2g.35gb", "3g.71gb", "4g.71gb", "7g.141gb"];
  return ["1g.10gb", "1g.20gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb"];
}

export const canBeCut = (model: string) => /^(A30|A100|H100|H200|B200|GH200)/i.test(model);
