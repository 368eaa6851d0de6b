import { useQueries, useQuery } from "@tanstack/react-query";
import { jobFileQuery } from "@/api/queries";
import { useMay } from "@/api/session";
import type { Job, Plan, Why } from "@/api/types";
import { keysOf, planned, planTextQuery } from "../data";
import { keyOf } from "../file";
import { type Choice, fewerGpus } from "../why";

export interface Priced extends Choice {
  /** What it would come to with the change; none while it is asked for, or without a price. */
  plan: Plan | undefined;
  /** In millionths of a dollar. */
  price: number | undefined;
  /** It is being asked for. */
  pricing: boolean;
}

/** Choices with their prices, and what the job costs as it is. */
export function useChoices(job: Job, why: Why, given: readonly Choice[]) {
  const mayPlan = useMay("JobsPlan", job).ok;
  const maySubmit = useMay("JobsSubmit", { team: job.team }).ok;
  const file = useQuery(jobFileQuery(job.id)).data;
  const fewer = maySubmit ? fewerGpus(why, keyOf(file, "gpus")) : undefined;
  const choices: Choice[] = [...given];
  if (fewer && !given.some((c) => c.deed.kind === "replace" && c.deed.keys.gpus === fewer.gpus))
    choices.push({
      id: "fewer",
      label: `${fewer.n === 1 ? "1 GPU" : `${fewer.n} GPUs`} instead of ${keyOf(file, "gpus")}`,
      deed: { kind: "replace", keys: { gpus: fewer.gpus } },
      starts: undefined,
      stops: 0,
      command: undefined,
      total: undefined,
    });
  const on = mayPlan && file !== undefined;
  const base = useQuery({ ...planTextQuery(planned(file ?? "")), enabled: on });
  const plans = useQueries({
    queries: choices.map((c) => {
      const keys = keysOf(c.deed);
      return {
        ...planTextQuery(planned(file ?? "", keys ?? {})),
        enabled: on && keys !== undefined,
        placeholderData: undefined,
      };
    }),
  });
  const priced: Priced[] = choices.map((c, i) => ({
    ...c,
    plan: plans[i]?.data,
    price: c.total ?? plans[i]?.data?.total_micros ?? undefined,
    pricing: c.total === undefined && Boolean(plans[i]?.isLoading),
  }));
  // What we propose ourselves has to be true: it is left out unless it starts at once.
  return {
    file,
    base: base.data,
    choices: priced.filter((c) => c.id !== "fewer" || c.plan?.starts_now),
  };
}

/** `−22 %` of the price as it is; nothing where it stays. */
export function priceChange(from: number | null | undefined, to: number | null | undefined) {
  if (!from || to === null || to === undefined || from === to) return undefined;
  const percent = Math.round(((to - from) / from) * 100);
  return percent === 0 ? undefined : percent;
}
