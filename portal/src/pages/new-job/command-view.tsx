import { Download } from "lucide-react";
import { Button, CopyButton, Note } from "@/design";
import { download } from "@/lib/csv";
import { commandLine, FROM_FILE, oneLine } from "./model/command-line";
import type { JobDoc } from "./model/doc";

/** The file as a command. What flags have no words for is named, and the file is the way. */
export function CommandView({ job, onYaml }: { job: JobDoc; onYaml: () => void }) {
  if (job.mistakes.length > 0)
    return (
      <div className="p-4">
        <Note tone="warn">
          The YAML has a mistake in line {job.mistakes[0]?.line}, so there is no command for it yet.{" "}
          <Button size="sm" onClick={onYaml}>
            Show YAML
          </Button>
        </Note>
      </div>
    );
  const line = commandLine(job);
  const file = line.unsaid.length > 0;
  const text = oneLine(line);
  const lines = file ? [text] : ["berth run", ...line.parts];
  return (
    <div className="flex max-w-180 flex-col gap-4 p-4">
      <div className="relative rounded-md border border-line bg-surface">
        <pre className="overflow-x-auto p-3 pr-10 text-12 leading-5">
          <code>
            {lines.map((part, i) => (
              <span key={i} className={i === 0 ? "block" : "block pl-4"}>
                {part}
                {i < lines.length - 1 && <span className="text-faint"> \</span>}
              </span>
            ))}
          </code>
        </pre>
        <div className="absolute top-1.5 right-1.5">
          <CopyButton text={lines.join(" \\\n  ")} label="Copy" />
        </div>
      </div>
      {file ? (
        <div className="flex flex-col gap-3">
          <p>
            Flags cannot say all of this file. Save it as <code className="text-12">job.yaml</code>{" "}
            and submit it from there.
          </p>
          <ul className="flex flex-col gap-1">
            {line.unsaid.map((u) => (
              <li key={u.key} className="flex gap-2">
                <code className="w-24 shrink-0 truncate text-12 leading-5">{u.key}</code>
                <span className="min-w-0 text-muted wrap-anywhere">{u.why}</span>
              </li>
            ))}
          </ul>
          <div>
            <Button
              icon={Download}
              onClick={() => download("job.yaml", job.text, "application/yaml")}
            >
              Save job.yaml
            </Button>
          </div>
        </div>
      ) : (
        <p className="text-muted">
          It follows the form and the YAML. <code className="text-12">berth plan</code> with the
          same flags shows the plan; <code className="text-12">{FROM_FILE}</code> submits the YAML
          as a file.
        </p>
      )}
    </div>
  );
}
