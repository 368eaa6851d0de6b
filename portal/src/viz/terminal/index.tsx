// The terminal is loaded when one is opened.

import { lazy } from "react";

export type { ShellSocket, TerminalProps } from "./TerminalView";

export const Terminal = lazy(() => import("./TerminalView"));
