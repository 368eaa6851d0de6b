// The editor is loaded when a page shows one; the comparison needs none of it.

import { lazy } from "react";

export { DiffView, type DiffViewProps } from "./DiffView";
export { type DiffLine, type DiffRow, diffLines, diffRows } from "./diff";
export type { CodeEditorProps, Diagnostic } from "./Editor";

export const CodeEditor = lazy(() => import("./Editor"));
