import { Pencil, Plus, X } from "lucide-react";
import type { May } from "@/api/rights";
import type { ModelVersion, Pair } from "@/api/tracking";
import { Button, Chip, None } from "@/design";
import { ownTags } from "../models/model";
import type { Asked } from "./dialogs";

/** A description as plain text with its line breaks. */
export function Description({
  text,
  write,
  onEdit,
}: {
  text: string | undefined;
  /** Undefined: the user cannot change it anywhere on this page. */
  write: May | undefined;
  onEdit: () => void;
}) {
  return (
    <div className="flex min-w-0 items-start gap-2">
      {text ? (
        <p className="min-w-0 max-w-180 whitespace-pre-wrap wrap-anywhere">
          <bdi>{text}</bdi>
        </p>
      ) : (
        <p className="min-w-0 text-muted">No description</p>
      )}
      {write && (
        <Button
          look="quiet"
          size="sm"
          icon={Pencil}
          iconOnly
          denied={write.reason}
          onClick={onEdit}
        >
          Edit description
        </Button>
      )}
    </div>
  );
}

/** Tags as chips. A click changes a tag, and its cross removes it after a question. */
export function TagList({
  tags,
  version,
  write,
  onAsk,
}: {
  tags: readonly Pair[];
  version?: ModelVersion;
  write: May | undefined;
  onAsk: (asked: Asked) => void;
}) {
  const of = version && { version };
  return (
    <div className="flex flex-wrap items-center gap-1.5">
      {ownTags(tags).map((tag) => (
        <span key={tag.key} className="inline-flex max-w-full items-center">
          <Chip
            name={tag.key}
            {...(write?.ok && {
              onClick: () => onAsk({ kind: "tag", key: tag.key, value: tag.value, ...of }),
            })}
          >
            {tag.value.length > 200 ? `${tag.value.slice(0, 200)}…` : tag.value}
          </Chip>
          {write?.ok && (
            <Button
              look="quiet"
              size="sm"
              icon={X}
              iconOnly
              onClick={() => onAsk({ kind: "untag", key: tag.key, ...of })}
            >
              {`Remove the tag ${tag.key}`}
            </Button>
          )}
        </span>
      ))}
      {write ? (
        <Button
          look="quiet"
          size="sm"
          icon={Plus}
          denied={write.reason}
          onClick={() => onAsk({ kind: "tag", ...of })}
        >
          Tag
        </Button>
      ) : (
        ownTags(tags).length === 0 && <None />
      )}
    </div>
  );
}

/** Aliases as chips, each with its version. */
export function AliasList({
  aliases,
  version,
  write,
  onAsk,
  onOpen,
}: {
  aliases: readonly { alias: string; version: string }[];
  version?: ModelVersion;
  write: May | undefined;
  onAsk: (asked: Asked) => void;
  onOpen?: (version: string) => void;
}) {
  return (
    <div className="flex flex-wrap items-center gap-1.5">
      {aliases.map((a) => (
        <span key={a.alias} className="inline-flex max-w-full items-center">
          <Chip {...(onOpen && { onClick: () => onOpen(a.version) })}>
            {version ? a.alias : `${a.alias} → ${a.version}`}
          </Chip>
          {write?.ok && (
            <Button
              look="quiet"
              size="sm"
              icon={X}
              iconOnly
              onClick={() => onAsk({ kind: "unalias", alias: a.alias, names: a.version })}
            >
              {`Remove the alias ${a.alias}`}
            </Button>
          )}
        </span>
      ))}
      {write ? (
        <Button
          look="quiet"
          size="sm"
          icon={Plus}
          denied={write.reason}
          onClick={() => onAsk({ kind: "alias", ...(version && { version }) })}
        >
          Alias
        </Button>
      ) : (
        aliases.length === 0 && <None />
      )}
    </div>
  );
}
