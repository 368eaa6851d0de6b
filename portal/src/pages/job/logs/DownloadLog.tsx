import { Download } from "lucide-react";
import { useEffect, useRef, useState } from "react";
import { asApiError } from "@/api/error";
import type { Job } from "@/api/types";
import { Button, toast } from "@/design";
import { count } from "@/lib/format";
import { wholeLog } from "./use-log";

/** The whole log of an attempt as a text file. It counts while it comes, and a second click ends it. */
export function DownloadLog({
  job,
  attempt,
  task,
  rank,
}: {
  job: Job;
  attempt: number | undefined;
  task: number | undefined;
  rank: number | undefined;
}) {
  const [lines, setLines] = useState<number>();
  const running = useRef<AbortController>(null);
  useEffect(() => () => running.current?.abort(), []);
  const go = async () => {
    if (running.current) {
      running.current.abort();
      return;
    }
    const stop = new AbortController();
    running.current = stop;
    setLines(0);
    try {
      const blob = await wholeLog({ job: job.id, attempt, task, rank }, setLines, stop.signal);
      const url = URL.createObjectURL(blob);
      const a = document.createElement("a");
      a.href = url;
      a.download = `job-${job.id}${attempt === undefined ? "" : `-attempt-${attempt}`}.log`;
      a.click();
      setTimeout(() => URL.revokeObjectURL(url), 10_000);
    } catch (e) {
      if (!stop.signal.aborted) toast(`Not downloaded: ${asApiError(e).message}`, { tone: "bad" });
    } finally {
      running.current = null;
      setLines(undefined);
    }
  };
  return (
    <Button look="quiet" icon={Download} onClick={() => void go()}>
      {lines === undefined ? (
        <span className="max-sm:sr-only">Download</span>
      ) : (
        `${count(lines)} lines; stop`
      )}
    </Button>
  );
}
