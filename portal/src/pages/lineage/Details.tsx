import { Repeat2, Waypoints } from "lucide-react";
import type { Lineage, LineageNode } from "@/api/types";
import {
  Button,
  CommandLine,
  Facts,
  LinkButton,
  Money,
  Mono,
  Note,
  TextLink,
  Time,
} from "@/design";
import { bytes, count, plural } from "@/lib/format";
import { Row } from "./ListView";
import {
  costOf,
  type Direction,
  kindOf,
  lineageCommand,
  nameOf,
  neighbours,
  reach,
  reproduceCommand,
  runBehind,
  targetOf,
} from "./model";

/** The facts about the chosen node, links to its page, and its neighbours. */
export function Details({
  of,
  node,
  team,
  onChoose,
  onAsk,
}: {
  of: Lineage;
  node: LineageNode;
  team: string | undefined;
  onChoose: (id: string) => void;
  /** Shows the lineage of this node. Undefined for the start. */
  onAsk?: () => void;
}) {
  const { word } = kindOf(node.kind);
  const run = runBehind(of, node);
  const its = node.team || team;
  return (
    <div className="flex flex-col gap-4">
      <div>
        <p className="text-12 text-muted">{word}</p>
        <h2 className="font-semibold text-14 wrap-anywhere">
          <bdi>{nameOf(node)}</bdi>
        </h2>
      </div>
      {node.hidden && (
        <Note>
          It belongs to a team whose data you may not see. The graph shows it to be complete.
        </Note>
      )}
      {node.gone && <Note tone="warn">This was removed. Its outputs still refer to it.</Note>}
      <div className="flex flex-wrap gap-2 empty:hidden">
        <Open node={node} />
        {run && (
          <LinkButton to="/runs/$run" params={{ run }} search={{ reproduce: true }} icon={Repeat2}>
            Reproduce
          </LinkButton>
        )}
        {onAsk && (
          <Button icon={Waypoints} onClick={onAsk}>
            Show its lineage
          </Button>
        )}
      </div>
      <Known of={of} node={node} />
      <Beside title="Made from" of={of} id={node.id} direction="before" onChoose={onChoose} />
      <Beside title="Made into" of={of} id={node.id} direction="after" onChoose={onChoose} />
      {!node.hidden && (
        <section aria-label="On the command line" className="flex flex-col gap-2">
          <h3 className="font-medium">On the command line</h3>
          <div className="divide-y divide-line rounded-md border border-line">
            <CommandLine command={lineageCommand(node.id, team)} />
            {run && <CommandLine command={reproduceCommand(run, its)} />}
          </div>
          {run && (
            <p className="text-12 text-muted">
              <code>berth reproduce</code> prints a job file that repeats the run, and what has
              changed since. <code>--submit</code> submits the job.
            </p>
          )}
        </section>
      )}
    </div>
  );
}

function Open({ node }: { node: LineageNode }) {
  const target = targetOf(node);
  if (!target) return null;
  const look = {
    look: "primary" as const,
    children: `Open ${kindOf(node.kind).word.toLowerCase()}`,
  };
  switch (target.to) {
    case "/jobs/$job":
      return <LinkButton {...look} to={target.to} params={target.params} />;
    case "/runs/$run":
      return <LinkButton {...look} to={target.to} params={target.params} />;
    case "/models/$model":
      return <LinkButton {...look} to={target.to} params={target.params} search={target.search} />;
    case "/models":
      return <LinkButton {...look} to={target.to} search={target.search} />;
  }
}

function Known({ of, node }: { of: Lineage; node: LineageNode }) {
  const d = node.details;
  const cost = costOf(of, node);
  return (
    <Facts
      items={[
        Boolean(node.team) && ["Team", <bdi key="t">{node.team}</bdi>],
        Boolean(d.status) && ["State", d.status?.toLowerCase()],
        cost !== undefined && [
          node.kind === "run" ? "Cost of its job" : "Cost",
          <Money key="c" micros={cost} />,
        ],
        d.gpu_ms != null && ["GPU-hours", count(d.gpu_ms / 3_600_000, 1)],
        Boolean(d.asks) && ["Asks for", d.asks],
        Boolean(d.gpus) && ["GPUs", d.gpus],
        Boolean(d.by) && ["By", <bdi key="b">{d.by}</bdi>],
        Boolean(d.created) && ["Made", <Time key="m" at={d.created} as="both" />],
        Boolean(d.started) && ["Started", <Time key="s" at={d.started} as="both" />],
        Boolean(d.ended) && ["Ended", <Time key="e" at={d.ended} as="both" />],
        Boolean(d.project) && [
          "Project",
          <TextLink key="p" to="/jobs" search={{ project: d.project ?? undefined }}>
            <bdi>{d.project}</bdi>
          </TextLink>,
        ],
        Boolean(d.experiment) && ["Experiment", <bdi key="x">{d.experiment}</bdi>],
        Boolean(d.aliases?.length) && ["Aliases", <bdi key="a">{d.aliases?.join(", ")}</bdi>],
        d.bytes != null && [
          "Size",
          d.files == null ? bytes(d.bytes) : `${bytes(d.bytes)} in ${plural(d.files, "file")}`,
        ],
        Boolean(d.hash) && ["Hash", <Mono key="h">{d.hash ?? ""}</Mono>],
        Boolean(d.commit) && ["Commit", <Mono key="g">{d.commit ?? ""}</Mono>],
        d.dirty != null && ["Changes", d.dirty ? "uncommitted" : "all committed"],
        Boolean(d.source) && ["Files at", <Mono key="f">{d.source ?? ""}</Mono>],
        Boolean(d.checkpoint) && ["Checkpoint", <Mono key="k">{d.checkpoint ?? ""}</Mono>],
        Boolean(d.note) && ["Note", <bdi key="n">{d.note}</bdi>],
      ]}
    />
  );
}

/** The maximum of each list. The graph shows all neighbours. */
const MOST = 12;

function Beside({
  title,
  of,
  id,
  direction,
  onChoose,
}: {
  title: string;
  of: Lineage;
  id: string;
  direction: Direction;
  onChoose: (id: string) => void;
}) {
  const near = neighbours(of, id, direction);
  if (near.length === 0) return null;
  const far = reach(of, id, direction) - near.length;
  return (
    <div>
      <h3 className="mb-1 font-medium">{title}</h3>
      <ul className="-mx-2 flex flex-col gap-0.5">
        {near.slice(0, MOST).map(({ node, how }, i) => (
          <li key={`${node.id} ${i}`}>
            <Row of={of} node={node} how={how} chosen={undefined} onChoose={onChoose} />
          </li>
        ))}
      </ul>
      {(far > 0 || near.length > MOST) && (
        <p className="text-12 text-muted">
          {[
            near.length > MOST && `${count(near.length - MOST)} more`,
            far > 0 && `${plural(far, "thing")} farther away`,
          ]
            .filter(Boolean)
            .join(", ")}
          .
        </p>
      )}
    </div>
  );
}
