import { Document, isMap, parse, type YAMLMap } from "yaml";

/** What a document for a queue may say; the world also has what a queue used, which nobody wishes. */
const OF_THE_WORLD = new Set(["credits", "past_use", "spent", "budget", "version"]);

type Fields = Record<string, unknown>;

/**
 * The policy and the queues as they are, as documents that can be changed and applied. `world` is
 * what the server tells of its state.
 */
export function documentsOf(world: string): string {
  const state = (parse(world) ?? {}) as { policy?: Fields; queues?: Fields[] };
  const documents = [
    written({ kind: "policy", ...wished(state.policy ?? {}) }),
    ...(state.queues ?? []).map((queue) => written({ kind: "queue", ...wished(queue) })),
  ];
  return documents.join("---\n");
}

function wished(fields: Fields): Fields {
  return Object.fromEntries(Object.entries(fields).filter(([key]) => !OF_THE_WORLD.has(key)));
}

/** Small maps, such as a quota, in one line. */
function written(fields: Fields): string {
  const document = new Document(fields);
  const root = document.contents as YAMLMap;
  for (const { value } of root.items)
    if (isMap(value) && value.items.length <= 4) value.flow = true;
  return document.toString({ lineWidth: 0 });
}
