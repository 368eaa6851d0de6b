import { useQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { FileText, RotateCcw } from "lucide-react";
import { useEffect, useRef, useState } from "react";
import { jobFile, templatesQuery } from "@/api/queries";
import { Button, Menu, type MenuItem, toast } from "@/design";
import { EMPTY } from "./model/draft";

const route = getRouteApi("/new");

/** What a new job starts from: a template, the file of another job, nothing. */
export interface Start {
  loading: boolean;
  error: unknown;
  /** Counts what was taken over, so that the form begins anew. */
  count: number;
  take: (text: string, what: string) => void;
}

export function useStart({
  text,
  setText,
}: {
  text: string;
  setText: (text: string) => void;
}): Start {
  const { clone, template } = route.useSearch();
  const navigate = route.useNavigate();
  const [count, setCount] = useState(0);
  const [error, setError] = useState<unknown>();
  const before = useRef(text);
  before.current = text;

  const take = (next: string, what: string) => {
    const old = before.current;
    setText(next);
    setCount((n) => n + 1);
    if (old !== EMPTY && old.trim() !== "" && old !== next)
      toast(`Now ${what}`, {
        action: {
          label: "Back to the draft",
          onClick: () => {
            setText(old);
            setCount((n) => n + 1);
          },
        },
      });
  };
  const taken = useRef(take);
  taken.current = take;

  const templates = useQuery({ ...templatesQuery, enabled: template !== undefined });
  // Once taken over, the draft is the truth: a reload must not bring the first text back.
  useEffect(() => {
    const forget = () =>
      void navigate({
        search: (old) => ({ ...old, clone: undefined, template: undefined }),
        replace: true,
      });
    if (clone !== undefined) {
      const stop = new AbortController();
      setError(undefined);
      jobFile(clone, stop.signal)
        .then((file) => {
          taken.current(file, `the file of ${clone}`);
          forget();
        })
        .catch((e) => {
          if (stop.signal.aborted) return;
          setError(e);
          forget();
        });
      return () => stop.abort();
    }
    if (template !== undefined && templates.data) {
      const found = templates.data.find((t) => t.name === template);
      if (found) taken.current(found.file, `the template ${template}`);
      else toast(`There is no template ${template}`, { tone: "bad" });
      forget();
    }
  }, [clone, template, templates.data, navigate]);

  const loading = clone !== undefined || (template !== undefined && templates.isPending);
  return {
    loading,
    error: error ?? (template !== undefined ? templates.error : undefined) ?? undefined,
    count,
    take,
  };
}

/** The templates, and the way back to an empty file. */
export function StartFrom({ start }: { start: Start }) {
  const templates = useQuery(templatesQuery);
  const list: MenuItem[] = (templates.data ?? []).map((t) => ({
    label: (
      <>
        <bdi>{t.name}</bdi> <bdi className="text-12 text-muted">{t.team}</bdi>
      </>
    ),
    icon: FileText,
    onSelect: () => start.take(t.file, `the template ${t.name}`),
  }));
  return (
    <Menu
      trigger={<Button icon={FileText}>Start from…</Button>}
      header={
        list.length === 0 ? (
          <p className="max-w-64 px-2 py-1.5 text-12 text-muted">
            {templates.error
              ? "The templates could not be read."
              : templates.isPending
                ? "Loading templates…"
                : "No templates yet. berth template set NAME -f job.yaml makes one."}
          </p>
        ) : undefined
      }
      items={[
        list.length > 0 && "Templates",
        ...list,
        list.length > 0 && "-",
        {
          label: "An empty file",
          icon: RotateCcw,
          onSelect: () => start.take(EMPTY, "an empty file"),
        },
      ]}
    />
  );
}
