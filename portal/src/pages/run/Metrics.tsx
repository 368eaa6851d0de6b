import { useMemo } from "react";
import { EmptyState } from "@/design";
import { MetricCurves } from "../experiments/CurvesView";
import { namesOf } from "../experiments/model/row";
import type { RunParts } from "./model";
import type { RunSearch } from "./search";

/** The curves of one run. */
export default function Metrics({
  parts,
  search,
  set,
}: {
  parts: RunParts;
  search: RunSearch;
  set: (change: Partial<RunSearch>) => void;
}) {
  const { row } = parts;
  const drawn = useMemo(() => [row], [row]);
  const names = useMemo(() => namesOf(drawn).metrics, [drawn]);
  if (names.length === 0)
    return (
      <EmptyState title="No metrics yet" command={'mlflow.log_metric("loss", 0.5, step=1)'}>
        This call logs a value of a metric.
      </EmptyState>
    );
  return <MetricCurves drawn={drawn} names={names} search={search} set={set} />;
}
