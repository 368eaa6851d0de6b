import { Check, Copy } from "lucide-react";
import { useEffect, useState } from "react";
import { Button } from "./Button";

/** Copies text, and says that it did. */
export function CopyButton({
  text,
  label = "Copy",
  size = "sm",
}: {
  text: string | (() => string);
  label?: string;
  size?: "sm" | "md";
}) {
  const [done, setDone] = useState(false);
  useEffect(() => {
    if (!done) return;
    const t = setTimeout(() => setDone(false), 1500);
    return () => clearTimeout(t);
  }, [done]);
  return (
    <>
      <Button
        look="quiet"
        size={size}
        iconOnly
        icon={done ? Check : Copy}
        onClick={async () => {
          await copyText(typeof text === "string" ? text : text());
          setDone(true);
        }}
      >
        {done ? "Copied" : label}
      </Button>
      <span role="status" className="sr-only">
        {done ? "Copied" : ""}
      </span>
    </>
  );
}

/** Also where the page is not served over TLS and the browser has no clipboard for it. */
export async function copyText(text: string) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = document.createElement("textarea");
    area.value = text;
    area.style.position = "fixed";
    area.style.opacity = "0";
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
}

/** One command in one line, with a button that copies it. */
export function CommandLine({ command }: { command: string }) {
  return (
    <div className="flex min-w-0 items-center gap-2 py-0.5 pr-1 pl-3 text-left">
      <span aria-hidden className="select-none font-mono text-12 text-faint">
        $
      </span>
      {/* It scrolls where it is too long, and so takes the focus. */}
      <code
        tabIndex={0}
        className="min-w-0 flex-1 overflow-x-auto whitespace-nowrap py-1 text-12 [scrollbar-width:none]"
      >
        {command}
      </code>
      <CopyButton text={command} label="Copy the command" />
    </div>
  );
}

/** At the foot of a page: the command that gives the same answer. */
export function CommandBar({ command }: { command: string }) {
  return (
    <div
      role="group"
      aria-label="The same on the command line"
      className="shrink-0 border-line border-t bg-surface"
    >
      <CommandLine command={command} />
    </div>
  );
}

/** A word of a command as a shell takes it: quoted only where it must be. */
export function shell(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

/** `berth("ps", { "--team": "nlp", "--all": true })` leaves out what is not set. */
export function berth(
  command: string,
  flags: Record<string, string | number | boolean | string[] | null | undefined> = {},
): string {
  const out = [`berth ${command}`];
  for (const [flag, value] of Object.entries(flags)) {
    if (value === undefined || value === null || value === false || value === "") continue;
    if (value === true) out.push(flag);
    else if (Array.isArray(value)) {
      if (value.length > 0) out.push(`${flag} ${shell(value.join(","))}`);
    } else out.push(`${flag} ${shell(String(value))}`);
  }
  return out.join(" ");
}
