// A shell in a running job.

import { FitAddon } from "@xterm/addon-fit";
import { type ITheme, Terminal } from "@xterm/xterm";
import "@xterm/xterm/css/xterm.css";
import { useEffect, useRef, useState } from "react";
import { type Rgb, readable, rgbOf } from "../common/colour";
import "../common/viz.css";
import { type Ink, useInk } from "../common/theme";
import { open, type Phase, phaseWords, resize, told } from "./protocol";
import "./terminal.css";

/** The part of WebSocket that is used. */
export interface ShellSocket {
  binaryType: BinaryType;
  readonly readyState: number;
  send(data: string | Uint8Array<ArrayBuffer>): void;
  close(): void;
  addEventListener(type: "open" | "close" | "error", listener: () => void): void;
  addEventListener(type: "message", listener: (event: MessageEvent) => void): void;
}

export interface TerminalProps {
  title: string;
  /** Opens a connection: once at first, and again for each "Connect again". */
  connect: () => ShellSocket;
  task?: number | undefined;
  /** The user's shell where left out. */
  command?: readonly string[] | undefined;
  height?: number | undefined;
  onPhase?: ((phase: Phase) => void) | undefined;
}

const OPEN = 1;
const NO_COMMAND: readonly string[] = [];

export default function TerminalView(props: TerminalProps) {
  const { title, connect, task, command = NO_COMMAND, height = 420 } = props;
  const ink = useInk();
  const host = useRef<HTMLDivElement>(null);
  const terminal = useRef<Terminal | null>(null);
  const [round, setRound] = useState(0);
  const [phase, setPhase] = useState<Phase>({ kind: "connecting" });
  const latest = useRef({ connect, onPhase: props.onPhase, task, command, ink });
  latest.current = { connect, onPhase: props.onPhase, task, command, ink };

  useEffect(() => {
    const element = host.current;
    if (!element) return;
    const now = latest.current;
    const xterm = new Terminal({
      theme: themeOf(now.ink),
      fontFamily: now.ink.fontMono,
      fontSize: 13,
      lineHeight: 1.2,
      scrollback: 10_000,
      cursorBlink: false,
      // Colours of programs are made readable on our ground.
      minimumContrastRatio: 4.5,
      screenReaderMode: false,
      // Links of programs are shown as text: a log or a program must not lead anybody astray.
      linkHandler: null,
    });
    const fit = new FitAddon();
    xterm.loadAddon(fit);
    xterm.open(element);
    fit.fit();
    terminal.current = xterm;

    let over = false;
    const change = (next: Phase) => {
      if (over) return;
      over = next.kind !== "open" && next.kind !== "connecting";
      if (over) xterm.options.disableStdin = true;
      setPhase(next);
      latest.current.onPhase?.(next);
    };
    change({ kind: "connecting" });
    const socket = now.connect();
    socket.binaryType = "arraybuffer";
    const begin = () => {
      socket.send(
        open({ task: now.task, command: now.command, rows: xterm.rows, columns: xterm.cols }),
      );
      change({ kind: "open" });
      xterm.focus();
    };
    socket.addEventListener("open", begin);
    if (socket.readyState === OPEN) begin();
    socket.addEventListener("message", ({ data }) => {
      if (data instanceof ArrayBuffer) {
        xterm.write(new Uint8Array(data));
        return;
      }
      const message = typeof data === "string" ? told(data) : null;
      if (message?.kind === "exit") change({ kind: "ended", code: message.code });
      else if (message) change({ kind: "refused", problem: message.problem });
    });
    socket.addEventListener("close", () => change({ kind: "lost" }));
    socket.addEventListener("error", () => change({ kind: "lost" }));

    const encoder = new TextEncoder();
    const send = (data: Uint8Array<ArrayBuffer>) => {
      if (!over && socket.readyState === OPEN) socket.send(data);
    };
    xterm.onData((text) => send(encoder.encode(text)));
    xterm.onBinary((text) => send(Uint8Array.from(text, (c) => c.charCodeAt(0) & 255)));
    xterm.onResize(({ rows, cols }) => {
      if (!over && socket.readyState === OPEN) socket.send(resize(rows, cols));
    });
    let frame = 0;
    const observer = new ResizeObserver(() => {
      cancelAnimationFrame(frame);
      frame = requestAnimationFrame(() => fit.fit());
    });
    observer.observe(element);
    return () => {
      over = true;
      cancelAnimationFrame(frame);
      observer.disconnect();
      socket.close();
      xterm.dispose();
      terminal.current = null;
    };
  }, [round]);

  useEffect(() => {
    if (terminal.current) terminal.current.options.theme = themeOf(ink);
  }, [ink]);

  const over = phase.kind !== "open" && phase.kind !== "connecting";
  return (
    <section className="viz-term" aria-label={title}>
      {/* Escape belongs to the shell, not to the drawer around it. */}
      {/* biome-ignore lint/a11y/noStaticElementInteractions: it only keeps keys from travelling on */}
      <div className="viz-term-pad" onKeyDown={(event) => event.stopPropagation()}>
        <div ref={host} className="viz-term-host" style={{ height }} />
      </div>
      {phase.kind !== "open" && (
        <div className={`viz-term-note viz-term-${phase.kind}`} role="status">
          <span>{phaseWords(phase)}</span>
          {over && (
            <button type="button" className="viz-button" onClick={() => setRound(round + 1)}>
              Connect again
            </button>
          )}
        </div>
      )}
    </section>
  );
}

function themeOf(ink: Ink): ITheme {
  const ground = rgbOf(ink.surface);
  const hex = (rgb: Rgb) =>
    `#${rgb.map((n) => Math.round(n).toString(16).padStart(2, "0")).join("")}`;
  const colour = (css: string) => hex(readable(rgbOf(css), ground));
  const names = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"] as const;
  const values = [
    ink.textFaint,
    ink.bad,
    ink.good,
    ink.warn,
    ink.accent,
    ink.state.preempted,
    ink.state.starting,
    ink.text,
  ];
  const theme: ITheme = {
    background: hex(ground),
    foreground: colour(ink.text),
    cursor: colour(ink.accent),
    cursorAccent: hex(ground),
    selectionBackground: hex(rgbOf(ink.accentSoft)),
    selectionForeground: colour(ink.text),
  };
  const out = theme as Record<string, string>;
  names.forEach((name, i) => {
    const value = colour(values[i] ?? ink.text);
    out[name] = value;
    out[`bright${name[0]?.toUpperCase()}${name.slice(1)}`] = value;
  });
  return theme;
}
