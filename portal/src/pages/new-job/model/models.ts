import type { Gpu } from "@/api/types";
import { isLeast } from "./gpus";

/** One model of GPU that the cluster has. */
export interface ModelFact {
  model: string;
  total: number;
  /** Whole ones that nobody holds. */
  free: number;
  memory_bytes: number;
  /** The cheapest one. */
  price_micros_per_hour: number;
}

/** Models by how many there are. */
export function modelsOf(gpus: readonly Gpu[]): ModelFact[] {
  const out = new Map<string, ModelFact>();
  for (const g of gpus) {
    const fact = out.get(g.model) ?? {
      model: g.model,
      total: 0,
      free: 0,
      memory_bytes: g.memory_bytes,
      price_micros_per_hour: g.price_micros_per_hour,
    };
    fact.total += 1;
    if (g.healthy && !g.failed && g.free_milli === 1000) fact.free += 1;
    fact.price_micros_per_hour = Math.min(fact.price_micros_per_hour, g.price_micros_per_hour);
    out.set(g.model, fact);
  }
  return [...out.values()].sort((a, b) => b.total - a.total || a.model.localeCompare(b.model));
}

/** `H100` stands for every H100, whatever its memory; `80GB+` for any with as much. */
export function matching(wanted: string, models: readonly ModelFact[]): ModelFact[] {
  if (wanted === "") return [...models];
  if (isLeast(wanted)) {
    const least = bytesOf(wanted.slice(0, -1));
    return models.filter((m) => m.memory_bytes >= least * 0.99);
  }
  const name = wanted.toLowerCase();
  return models.filter((m) => {
    const other = m.model.toLowerCase();
    return other === name || other.startsWith(`${name}-`);
  });
}

function bytesOf(text: string): number {
  const found = /^([\d.]+)\s?([kMGTP]?)(i?)B$/i.exec(text);
  if (!found) return 0;
  const step = found[3] ? 1024 : 1000;
  const power = ["", "k", "m", "g", "t", "p"].indexOf((found[2] ?? "").toLowerCase());
  return Number(found[1]) * step ** Math.max(0, power);
}

export interface Supply {
  free: number;
  total: number;
  /** From and to, where models differ. */
  least: number | undefined;
  most: number | undefined;
}

export function supplyOf(wanted: readonly string[], models: readonly ModelFact[]): Supply {
  const found = new Set((wanted.length > 0 ? wanted : [""]).flatMap((w) => matching(w, models)));
  const all = [...found];
  const prices = all.map((m) => m.price_micros_per_hour);
  return {
    free: all.reduce((n, m) => n + m.free, 0),
    total: all.reduce((n, m) => n + m.total, 0),
    least: prices.length > 0 ? Math.min(...prices) : undefined,
    most: prices.length > 0 ? Math.max(...prices) : undefined,
  };
}

/** The cheapest price per hour of what a job asks for, in the words of its file: `4 x H100:8`. */
export function priceOf(
  asks: string,
  gpus_milli: number,
  models: readonly ModelFact[],
): number | undefined {
  const wanted = asks
    .replace(/^\d+ x /, "")
    .split(/\s*(?:,|\bor\b)\s*/)
    .map((w) => w.replace(/[:/].*$/, ""))
    .filter((w) => /^[A-Za-z]/.test(w) || isLeast(w));
  const { least } = supplyOf(wanted, models);
  return least === undefined ? undefined : Math.round((least * gpus_milli) / 1000);
}
