import { Note, TextLink } from "@/design";
import type { ModelRights } from "./rights";

/** Says that another team owns the model, and what that leaves the reader. */
export function ReadOnly({
  rights: { owner, inside },
  prompt,
  version,
}: {
  rights: ModelRights;
  prompt: boolean;
  version: string | undefined;
}) {
  const what = prompt ? "prompt" : "model";
  return (
    <Note>
      <div className="flex flex-wrap gap-x-1.5">
        <span>
          This {what} belongs to team <bdi>{owner.team}</bdi> and is read-only here.
        </span>
        {inside ? (
          <TextLink
            to="/models/$model"
            params={{ model: owner.name }}
            search={{ team: owner.team, ...(version && { version }) }}
          >
            Open it in team {owner.team}
          </TextLink>
        ) : (
          !prompt && (
            <span>
              Its description, tags, aliases and versions are shared. Its files and its lineage stay
              with team <bdi>{owner.team}</bdi>.
            </span>
          )
        )}
      </div>
    </Note>
  );
}
