import type { Gpu, Node } from "@/api/types";
import { Drawer, Facts, Money, Mono, None, Note, TextLink } from "@/design";
import { bytes, gpus } from "@/lib/format";
import { stateOf, words } from "./model";
import { NodeActions, NodeState, until } from "./Nodes";

const WORD: Record<string, string> = {
  held: "held",
  idle: "held but idle",
  free: "free",
  failed: "out of use",
  drained: "takes no work",
  unknown: "unknown",
};

/** One node with each of its GPUs. */
export function NodeDrawer({
  node,
  gpus: all,
  onClose,
  onStep,
}: {
  node: Node | undefined;
  gpus: readonly Gpu[];
  onClose: () => void;
  onStep: (by: 1 | -1) => void;
}) {
  const mine = all.filter((gpu) => gpu.node === node?.name);
  const labels = Object.entries((node?.labels ?? {}) as Record<string, string>);
  return (
    <Drawer
      open={node !== undefined}
      onClose={onClose}
      onStep={onStep}
      title={node?.name ?? ""}
      command={`berth nodes ${node?.name ?? ""}`}
    >
      {node && (
        <div className="flex flex-col gap-4">
          <div className="flex items-center justify-between gap-2">
            <NodeState node={node} />
            <NodeActions node={node} />
          </div>
          {node.trouble && <Note tone="warn">{node.trouble}</Note>}
          <Facts
            items={[
              ["GPUs", `${gpus(node.gpus_milli)}, ${gpus(node.free_milli)} free`],
              ["Price", <Money key="price" micros={node.price_micros_per_hour} rate />],
              node.cpu_milli != null && [
                "CPU",
                `${gpus(node.cpu_milli)} cores, ${gpus(node.cpu_free_milli)} free`,
              ],
              node.memory_bytes != null && [
                "Memory",
                `${bytes(node.memory_bytes)}, ${bytes(node.memory_free_bytes)} free`,
              ],
              node.isolation && ["Isolation", node.isolation],
              node.until && ["Leaves", until(node.until)],
            ]}
          />
          <ul className="divide-y divide-line rounded-md border border-line">
            {mine.map((gpu) => (
              <li key={gpu.index} className="flex flex-col gap-0.5 px-3 py-2">
                <span className="flex items-baseline justify-between gap-2">
                  <span>
                    GPU {gpu.index} <span className="text-muted">{gpu.model}</span>
                  </span>
                  <span className="text-muted">{WORD[stateOf(gpu, node)]}</span>
                </span>
                {gpu.holders.map((holder) => (
                  <span key={String(holder.job)} className="text-12">
                    {holder.name ? (
                      <TextLink to="/jobs/$job" params={{ job: String(holder.job) }}>
                        {holder.name}
                      </TextLink>
                    ) : (
                      "a job of another team"
                    )}
                    {holder.team && <span className="text-muted"> {holder.team}</span>}
                  </span>
                ))}
                {words(gpu)
                  .slice(gpu.holders.length)
                  .map((line) => (
                    <span key={line} className="text-12 text-muted">
                      {line}
                    </span>
                  ))}
                <span className="text-12 text-muted tabular-nums">
                  {[
                    gpu.utilization != null && `${gpu.utilization} %`,
                    gpu.used_bytes != null &&
                      `${bytes(gpu.used_bytes)} of ${bytes(gpu.memory_bytes)}`,
                    gpu.watts != null && `${gpu.watts} W`,
                    gpu.celsius != null && `${gpu.celsius} °C`,
                  ]
                    .filter(Boolean)
                    .join(" · ")}
                </span>
              </li>
            ))}
          </ul>
          {labels.length > 0 ? (
            <Facts items={labels.map(([key, value]) => [key, <Mono key={key}>{value}</Mono>])} />
          ) : (
            <p className="text-muted">
              Labels <None />
            </p>
          )}
        </div>
      )}
    </Drawer>
  );
}
