import { Time } from "@/design";

const MOMENT = /(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z)/;

/** Words that sentences begin with. A name at the beginning stays as it is. */
const BEGINS =
  /^(?:it|its|enough|each|every|all|only|queue|pool|no|none|nothing|the|a|an|with|when|this|that|place|time|for|at|jobs?|nodes?|tasks?|is|one|waits?|failed|done|stopped|unknown|found|waiting|expected|there|needs|on|by|in)\b/;

function begun(text: string): string {
  return BEGINS.test(text) ? text.charAt(0).toUpperCase() + text.slice(1) : text;
}

/** A sentence of the API: its moments as local times, its first letter large. */
export function Sentence({ text }: { text: string }) {
  return (
    <bdi>
      {text
        .split(MOMENT)
        .map((part, i) =>
          i % 2 === 1 ? (
            <Time key={i} at={part} as="clock" />
          ) : (
            <Ticks key={i} text={i === 0 ? begun(part) : part} />
          ),
        )}
    </bdi>
  );
}

/** What stands in backquotes is code. */
export function Ticks({ text }: { text: string }) {
  return text.split(/`([^`\n]+)`/).map((part, i) =>
    i % 2 === 1 ? (
      <code key={i} className="text-12">
        {part}
      </code>
    ) : (
      part
    ),
  );
}
