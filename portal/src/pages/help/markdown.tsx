import type { ReactNode } from "react";

/** As much of Markdown as docs/errors and docs/reasons.md use. It makes elements, never HTML text. */
export function Markdown({ text }: { text: string }) {
  return blocks(text).map((b, i) => <Block key={i} text={b} />);
}

function blocks(text: string): string[] {
  const out: string[] = [];
  let fence = false;
  let now: string[] = [];
  const flush = () => {
    if (now.length > 0) out.push(now.join("\n"));
    now = [];
  };
  for (const line of text.split("\n")) {
    if (line.startsWith("```")) {
      if (!fence) flush();
      now.push(line);
      if (fence) flush();
      fence = !fence;
    } else if (!fence && line.trim() === "") flush();
    else now.push(line);
  }
  flush();
  return out;
}

function Block({ text }: { text: string }) {
  if (text.startsWith("```"))
    return (
      <pre className="overflow-x-auto rounded-md border border-line bg-surface px-3 py-2 text-12">
        {text.split("\n").slice(1, -1).join("\n")}
      </pre>
    );
  const heading = /^(#+) (.*)$/.exec(text);
  if (heading?.[1] === "#")
    return (
      <p className="font-medium text-16">{inline(heading[2]?.replace(/^BRT\d+: /, "") ?? "")}</p>
    );
  if (heading) return <h2 className="mt-2 font-semibold">{inline(heading[2] ?? "")}</h2>;
  if (/^[-*] /.test(text))
    return (
      <ul className="list-disc pl-5">
        {text.split(/\n(?=[-*] )/).map((item, i) => (
          <li key={i}>{inline(item.slice(2))}</li>
        ))}
      </ul>
    );
  return <p>{inline(text)}</p>;
}

/** Code, emphasis and the words of links; links lead into the repository, which is not here. */
function inline(text: string): ReactNode[] {
  return text
    .replaceAll("\n", " ")
    .split(/(`[^`]+`|\*[^*]+\*|\[[^\]]+\]\([^)]+\))/)
    .map((part, i) => {
      if (part.startsWith("`")) return <code key={i}>{part.slice(1, -1)}</code>;
      if (part.startsWith("*")) return <em key={i}>{part.slice(1, -1)}</em>;
      const link = /^\[([^\]]+)\]\(([^)]+)\)$/.exec(part);
      if (!link) return part;
      const page = /(BRT\d{4})\.md/.exec(link[2] ?? "")?.[1];
      return page ? (
        <a key={i} href={`/help/${page}`} className="text-accent hover:underline">
          {link[1]}
        </a>
      ) : (
        <span key={i}>{link[1]}</span>
      );
    });
}

export interface ReasonPage {
  code: string;
  sentence: string;
  cause: string;
  todo: string;
}

export function parseReasons(text: string): ReasonPage[] {
  return text.split("\n").flatMap((line) => {
    const cells = line.split("|").map((c) => c.trim());
    const code = /^`([a-z-]+)`$/.exec(cells[1] ?? "")?.[1];
    return code
      ? [{ code, sentence: cells[2] ?? "", cause: cells[3] ?? "", todo: cells[4] ?? "" }]
      : [];
  });
}
