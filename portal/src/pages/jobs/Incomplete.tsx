import type { IncompleteGang } from "@/api/types";
import { TextLink } from "@/design";
import { count } from "@/lib/format";

/** Gangs on Kubernetes that are no jobs yet, because pods of them do not exist. */
export function Incomplete({ gangs }: { gangs: readonly IncompleteGang[] | undefined }) {
  if (!gangs?.length) return null;
  const what = gangs.length === 1 ? "1 gang waits" : `${count(gangs.length)} gangs wait`;
  return (
    <details className="mx-4 mb-2 rounded-md border border-line bg-surface px-3 py-2">
      <summary className="cursor-pointer font-medium">{what} for pods that do not exist</summary>
      <ul className="mt-2 flex max-h-48 flex-col gap-2 overflow-y-auto">
        {gangs.map((gang) => (
          <li key={`${gang.namespace}/${gang.name}`} className="wrap-anywhere">
            <span className="font-medium">
              {gang.namespace}/{gang.name}
            </span>{" "}
            <span className="text-muted tabular-nums">
              {count(gang.pods)} of {count(gang.needed)} pods, queue{" "}
              <TextLink to="/queue" search={{ queue: gang.queue }}>
                {gang.queue}
              </TextLink>
            </span>
            <p className="text-muted">{gang.reason}</p>
          </li>
        ))}
      </ul>
    </details>
  );
}
