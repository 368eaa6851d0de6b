import { Pencil, Plus, X } from "lucide-react";
import { useState } from "react";
import { asApiError } from "@/api/error";
import { useMay } from "@/api/session";
import { Button, EmptyState, Panel, toast } from "@/design";
import { TagDialog, useRunChange } from "./Actions";
import { isOwnTag, type RunParts, tagsInOrder } from "./model";

/** The tags. A user with the right can change and remove them. */
export function Tags({ parts: { row, team } }: { parts: RunParts }) {
  const may = useMay("JobsSubmit", { team, user: row.user });
  const change = useRunChange();
  const [asked, ask] = useState<{ name: string; value: string }>();
  const tags = tagsInOrder(row.tags);
  const remove = async (key: string) => {
    try {
      await change.mutateAsync({ do: "untag", run: row.id, key });
      toast(`Removed the tag ${key}`);
    } catch (e) {
      toast(`Not removed: ${asApiError(e).message}`, { tone: "bad" });
    }
  };
  return (
    <Panel
      title="Tags"
      flush
      actions={
        <Button
          look="quiet"
          size="sm"
          icon={Plus}
          denied={may.reason}
          onClick={() => ask({ name: "", value: "" })}
        >
          Set a tag
        </Button>
      }
    >
      {tags.length === 0 ? (
        <EmptyState title="No tags" command={'mlflow.set_tag("task", "vision")'} />
      ) : (
        <ul className="max-h-110 divide-y divide-line overflow-y-auto" aria-label="Tags">
          {tags.map(([key, value]) => (
            <li key={key} className="flex min-h-8 items-center gap-2 px-3 py-1">
              <bdi className="w-2/5 shrink-0 text-muted wrap-anywhere">{key}</bdi>
              <bdi className="line-clamp-3 min-w-0 flex-1 wrap-anywhere">{value}</bdi>
              {isOwnTag(key) && may.ok && (
                <>
                  <Button
                    look="quiet"
                    size="sm"
                    icon={Pencil}
                    iconOnly
                    onClick={() => ask({ name: key, value })}
                  >
                    {`Change ${key}`}
                  </Button>
                  <Button look="quiet" size="sm" icon={X} iconOnly onClick={() => void remove(key)}>
                    {`Remove ${key}`}
                  </Button>
                </>
              )}
            </li>
          ))}
        </ul>
      )}
      {asked && <TagDialog run={row.id} {...asked} onClose={() => ask(undefined)} />}
    </Panel>
  );
}
