import { Plus, Trash2 } from "lucide-react";
import { useState } from "react";
import { ApiError } from "@/api/error";
import {
  Bar,
  Button,
  Checkbox,
  Chip,
  type Column,
  CommandLine,
  Confirm,
  CopyButton,
  Cut,
  Dialog,
  EmptyState,
  ErrorNote,
  ErrorState,
  Facts,
  Field,
  Gpu,
  Input,
  Kbd,
  Menu,
  Money,
  Note,
  Page,
  Panel,
  Segmented,
  Select,
  Skeleton,
  Span,
  Stat,
  StateBadge,
  Stats,
  Switch,
  Table,
  Tabs,
  Textarea,
  Time,
  toast,
} from "@/design";

const STATES =
  "pending starting running saving stopping preempted paused done failed cancelled held promised ready free cordoned draining troubled leaving idle active expired revoked ok refused".split(
    " ",
  );

const refused = new ApiError({
  status: 403,
  code: "BRT0006",
  title: "Permission denied",
  detail: "Stopping a job of nlp takes a team lead, or its owner.",
  next: "Ask a lead of the team.",
});

interface Row {
  id: string;
  name: string;
  cost: number;
}
const ROWS: Row[] = Array.from({ length: 5 }, (_, i) => ({
  id: String(i),
  name:
    i === 2
      ? "a name that goes on and on until somebody has to cut it short ".repeat(2)
      : `row ${i}`,
  cost: 10 ** (i * 2 + 2),
}));
const COLUMNS: readonly Column<Row>[] = [
  {
    id: "name",
    header: "Name",
    width: 160,
    grow: 1,
    fixed: true,
    narrow: "title",
    cell: (r) => <Cut>{r.name}</Cut>,
  },
  {
    id: "cost",
    header: "Cost",
    width: 120,
    align: "right",
    narrow: "end",
    cell: (r) => <Money micros={r.cost} />,
  },
];
const ID = (r: Row) => r.id;

/** Each component in each state. Only in `npm run dev`. */
export default function GalleryPage() {
  const [dialog, setDialog] = useState(false);
  const [confirm, setConfirm] = useState(false);
  const [text, setText] = useState("hot");
  const [on, setOn] = useState(true);
  const [tab, setTab] = useState("one");
  return (
    <Page title="Gallery" subtitle="Each component in each state" command="berth --help">
      <div className="grid gap-4 lg:grid-cols-2">
        <Panel title="Buttons" actions={<CopyButton text="x" />}>
          <div className="flex flex-wrap items-center gap-2">
            <Button look="primary">Primary</Button>
            <Button>Secondary</Button>
            <Button look="quiet">Quiet</Button>
            <Button look="danger" icon={Trash2}>
              Danger
            </Button>
            <Button busy>Busy</Button>
            <Button disabled>Disabled</Button>
            <Button denied="Takes a team lead in nlp; you are a viewer.">Denied</Button>
            <Button size="sm">Small</Button>
            <Button icon={Plus} iconOnly keys="n">
              New
            </Button>
            <Menu
              trigger={<Button>Menu</Button>}
              items={[
                "Group",
                { label: "Pause" },
                { label: "Resume", denied: "It does not run." },
                "-",
                { label: "Stop", danger: true },
              ]}
            />
            <Button onClick={() => setDialog(true)}>Dialog</Button>
            <Button onClick={() => setConfirm(true)}>Confirm</Button>
            <Button
              onClick={() =>
                toast("4711 is stopped", { action: { label: "Undo", onClick: () => {} } })
              }
            >
              Toast
            </Button>
            <Kbd keys="mod+k" />
          </div>
        </Panel>
        <Panel title="States">
          <div className="grid grid-cols-[repeat(auto-fill,minmax(110px,1fr))] gap-2">
            {STATES.map((s) => (
              <StateBadge key={s} state={s} />
            ))}
          </div>
          <div className="mt-3 flex flex-wrap gap-2">
            {STATES.slice(0, 10).map((s) => (
              <StateBadge key={s} state={s} soft />
            ))}
          </div>
        </Panel>
        <Panel title="Fields">
          <div className="grid gap-3 sm:grid-cols-2">
            <Field label="Name" hint="As others will see it.">
              {(f) => <Input {...f} value={text} onChange={(e) => setText(e.target.value)} />}
            </Field>
            <Field label="GPUs" error="H900 is not a model that is here.">
              {(f) => <Input {...f} mono defaultValue="H900:8" />}
            </Field>
            <Field label="Team" optional>
              {(f) => (
                <Select
                  {...f}
                  value={text}
                  onChange={setText}
                  options={[
                    { value: "hot", label: "nlp" },
                    { value: "b", label: "vision" },
                  ]}
                />
              )}
            </Field>
            <Field label="Disabled">{(f) => <Input {...f} disabled defaultValue="fixed" />}</Field>
            <Field label="Command">
              {(f) => <Textarea {...f} mono rows={2} defaultValue="python train.py" />}
            </Field>
            <div className="flex flex-col gap-2">
              <Checkbox label="Checked" checked={on} onChange={(e) => setOn(e.target.checked)} />
              <Checkbox label="Partly" indeterminate onChange={() => {}} checked={false} />
              <Switch label="Preemptible" checked={on} onChange={setOn} />
              <Segmented
                label="Figure"
                value={tab}
                onChange={setTab}
                options={[
                  { value: "one", label: "Utilization" },
                  { value: "two", label: "Memory" },
                ]}
              />
            </div>
          </div>
          <div className="mt-3 flex flex-wrap gap-2">
            <Chip name="State" onRemove={() => {}}>
              Running, Waiting
            </Chip>
            <Chip on onClick={() => {}}>
              rank 0
            </Chip>
            <Chip>tag</Chip>
          </div>
        </Panel>
        <Panel title="Figures">
          <Facts
            items={[
              ["Money", <Money key="a" micros={1_240_500_000} />],
              ["A rate", <Money key="b" micros={19_920_000} rate />],
              ["GPUs", <Gpu key="c" milli={500} model="H100" />],
              ["When", <Time key="d" at={Date.now() - 840_000} as="both" />],
              ["How long", <Span key="e" from={new Date(Date.now() - 95_000).toISOString()} />],
              ["Nothing", <Money key="f" micros={null} />],
            ]}
          />
          <div className="mt-3 flex flex-col gap-2">
            <Bar
              label="nlp uses 44 of 64, 8 of them borrowed"
              whole={64}
              parts={[
                { value: 36, label: "own 36" },
                { value: 8, label: "borrowed 8", striped: true, tone: 2 },
              ]}
              mark={{ at: 48, label: "quota 48" }}
            />
            <Bar label="80 %" whole={100} parts={[{ value: 80, label: "80 %", tone: "warn" }]} />
          </div>
        </Panel>
        <div className="lg:col-span-2">
          <Stats>
            <Stat label="Running" note="of 14">
              12
            </Stat>
            <Stat label="Free GPUs" note="1,024 in all">
              96
            </Stat>
            <Stat label="Today" note="$4,100 forecast">
              <Money micros={1_240_500_000} />
            </Stat>
            <Stat label="Failed nodes" tone="bad" note="n08">
              1
            </Stat>
          </Stats>
        </div>
        <Panel title="A table in a panel" flush>
          <Table id="gallery" label="Rows" columns={COLUMNS} rows={ROWS} rowId={ID} empty="" fit />
        </Panel>
        <Panel title="On its way, and none" flush>
          <Table
            id="gallery-2"
            label="Rows"
            columns={COLUMNS}
            rows={undefined}
            rowId={ID}
            empty=""
            fit
          />
          <EmptyState title="No jobs yet" command="berth run -g 1 -- python train.py">
            The first one can be started here or from the command line.
          </EmptyState>
        </Panel>
        <Panel title="Errors">
          <div className="flex flex-col gap-3">
            <ErrorNote error={refused} onRetry={() => {}} />
            <Note>Forecasts are not available on this server.</Note>
            <Note tone="warn">This saves nothing: the job has no checkpoint yet.</Note>
            <ErrorState error={refused} onRetry={() => {}} />
          </div>
        </Panel>
        <Panel title="Tabs, command, skeleton" flush>
          <Tabs
            label="Views"
            value={tab}
            onChange={setTab}
            tabs={[
              { value: "one", label: "One", count: 12 },
              { value: "two", label: "Two" },
            ]}
          >
            <div className="flex flex-col gap-2 p-3">
              <Skeleton width="60%" />
              <Skeleton />
            </div>
          </Tabs>
          <CommandLine command="berth ps --team nlp --state pending -w" />
        </Panel>
      </div>
      <Dialog
        open={dialog}
        onClose={() => setDialog(false)}
        title="Save this view"
        footer={<Button look="primary">Save the view</Button>}
      >
        <Field label="Name">{(f) => <Input {...f} />}</Field>
      </Dialog>
      <Confirm
        open={confirm}
        onClose={() => setConfirm(false)}
        title="Stop 4711 llama-70b?"
        verb="Stop the job"
        loses={[
          { what: "11 min since the last checkpoint", amount: <Money micros={4_200_000} /> },
          { what: "3 jobs that come after it will not start" },
        ]}
        onConfirm={() => new Promise((_, no) => setTimeout(() => no(refused), 600))}
      />
    </Page>
  );
}
