// Stands in for the server's end of a shell.

import type { ShellSocket } from "../terminal";

export function fakeShell(kind: string): ShellSocket {
  const target = new EventTarget();
  const say = (data: unknown) => target.dispatchEvent(new MessageEvent("message", { data }));
  const bytes = (text: string) => new TextEncoder().encode(text).buffer;
  let state = 0;
  setTimeout(() => {
    state = 1;
    target.dispatchEvent(new Event("open"));
    if (kind === "refused") {
      const problem = {
        title: "Not running",
        detail: "Job 4711 is not running",
        code: "BRT-2107",
        next: "Wait until it runs.",
      };
      say(JSON.stringify({ kind: "problem", problem }));
      return;
    }
    say(
      bytes(
        "\u001b[1;32ma.kumar@gpu-01-01\u001b[0m:\u001b[34m~/llama\u001b[0m$ nvidia-smi -L\r\nGPU 0: NVIDIA H100 80GB HBM3\r\n\u001b[33mGPU 1: throttled\u001b[0m\r\n$ ",
      ),
    );
    if (kind === "ended") say(JSON.stringify({ kind: "exit", code: 130 }));
    if (kind === "lost") target.dispatchEvent(new Event("close"));
  }, 50);
  return {
    binaryType: "arraybuffer",
    get readyState() {
      return state;
    },
    send: (data) => {
      if (typeof data !== "string") say(data.slice().buffer);
    },
    close: () => {},
    addEventListener: (type: string, listener: unknown) => {
      target.addEventListener(type, listener as EventListener);
    },
  };
}
