import { useQuery } from "@tanstack/react-query";
import { Copy, Download } from "lucide-react";
import { Suspense } from "react";
import { jobFileQuery } from "@/api/queries";
import { useMay } from "@/api/session";
import type { Job } from "@/api/types";
import { Button, CopyButton, ErrorState, LinkButton } from "@/design";
import { download } from "@/lib/csv";
import { CodeEditor } from "@/viz/code-editor";
import { TabSkeleton } from "./Skeletons";

/** The job file as it was submitted. */
export default function JobFile({ job }: { job: Job }) {
  const file = useQuery(jobFileQuery(job.id));
  const submit = useMay("JobsSubmit", { team: job.team });
  if (file.error) return <ErrorState error={file.error} onRetry={() => void file.refetch()} />;
  if (file.data === undefined) return <TabSkeleton />;
  const text = file.data;
  return (
    <div className="flex flex-col gap-3 p-4">
      <div className="flex flex-wrap items-center gap-2">
        <p className="flex-1 text-muted max-md:basis-full">
          As it was submitted. A clone begins with it and may change any key.
        </p>
        {submit.ok && (
          <LinkButton to="/new" search={{ from: job.id, mode: "yaml" }} icon={Copy}>
            Clone and edit
          </LinkButton>
        )}
        <Button
          icon={Download}
          onClick={() => download(`job-${job.id}.yaml`, text, "application/yaml")}
        >
          Download
        </Button>
        <CopyButton text={text} label="Copy the file" size="md" />
      </div>
      <Suspense fallback={<TabSkeleton />}>
        <CodeEditor
          title="Job file"
          value={text}
          readOnly
          height={Math.max(260, Math.min(720, text.split("\n").length * 20 + 40))}
        />
      </Suspense>
    </div>
  );
}
