// An editor for YAML, with marks where something is wrong.

import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { yaml } from "@codemirror/lang-yaml";
import {
  bracketMatching,
  HighlightStyle,
  indentUnit,
  syntaxHighlighting,
} from "@codemirror/language";
import { lintGutter, lintKeymap, type Diagnostic as Mark, setDiagnostics } from "@codemirror/lint";
import { Compartment, EditorState, type Text } from "@codemirror/state";
import {
  drawSelection,
  EditorView,
  highlightActiveLine,
  highlightActiveLineGutter,
  keymap,
  lineNumbers,
  placeholder,
} from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { useEffect, useRef } from "react";
import { position } from "./position";
import "./editor.css";

export interface Diagnostic {
  /** From 1. */
  line: number;
  column: number;
  message: string;
  severity: "error" | "warning" | "info";
}

export interface CodeEditorProps {
  /** What is edited, for screen readers: "Job file". */
  title: string;
  value: string;
  onChange?: ((value: string) => void) | undefined;
  diagnostics?: readonly Diagnostic[] | undefined;
  readOnly?: boolean | undefined;
  placeholder?: string | undefined;
  height?: number | undefined;
  /** Ctrl-Enter. */
  onSubmit?: (() => void) | undefined;
}

// Names of tokens and not their values: the theme changes without the editor knowing.
const highlighting = HighlightStyle.define([
  { tag: [tags.propertyName, tags.definition(tags.propertyName)], class: "viz-code-key" },
  { tag: [tags.string, tags.special(tags.string)], class: "viz-code-string" },
  { tag: [tags.number, tags.bool, tags.null, tags.atom], class: "viz-code-value" },
  { tag: [tags.comment, tags.lineComment], class: "viz-code-comment" },
  {
    tag: [tags.punctuation, tags.separator, tags.squareBracket, tags.brace],
    class: "viz-code-mark",
  },
  { tag: [tags.keyword, tags.meta, tags.typeName, tags.labelName], class: "viz-code-meta" },
]);

const NONE: readonly Diagnostic[] = [];

export default function Editor(props: CodeEditorProps) {
  const { title, value, diagnostics = NONE, readOnly = false, height } = props;
  const host = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView | null>(null);
  const locked = useRef(new Compartment());
  const latest = useRef(props);
  latest.current = props;

  useEffect(() => {
    if (!host.current) return;
    const made = new EditorView({
      parent: host.current,
      state: EditorState.create({
        doc: value,
        extensions: [
          lineNumbers(),
          lintGutter(),
          history(),
          drawSelection(),
          bracketMatching(),
          highlightActiveLine(),
          highlightActiveLineGutter(),
          indentUnit.of("  "),
          yaml(),
          syntaxHighlighting(highlighting),
          EditorView.lineWrapping,
          EditorView.contentAttributes.of({ "aria-label": title }),
          locked.current.of(lock(readOnly)),
          ...(props.placeholder ? [placeholder(props.placeholder)] : []),
          keymap.of([
            {
              key: "Mod-Enter",
              run: () => {
                if (!latest.current.onSubmit) return false;
                latest.current.onSubmit();
                return true;
              },
            },
            // Tab leaves the editor after Escape, as CodeMirror has it.
            indentWithTab,
            ...defaultKeymap,
            ...historyKeymap,
            ...lintKeymap,
          ]),
          EditorView.updateListener.of((update) => {
            if (!update.docChanged) return;
            const text = update.state.doc.toString();
            if (text !== latest.current.value) latest.current.onChange?.(text);
          }),
        ],
      }),
    });
    view.current = made;
    return () => {
      made.destroy();
      view.current = null;
    };
  }, []);

  useEffect(() => {
    const now = view.current;
    if (!now) return;
    const old = now.state.doc.toString();
    if (old !== value) now.dispatch({ changes: { from: 0, to: old.length, insert: value } });
  }, [value]);
  useEffect(() => {
    view.current?.dispatch({ effects: locked.current.reconfigure(lock(readOnly)) });
  }, [readOnly]);
  useEffect(() => {
    const now = view.current;
    if (!now) return;
    now.dispatch(
      setDiagnostics(
        now.state,
        diagnostics.map((d) => markOf(now.state.doc, d)),
      ),
    );
  }, [diagnostics]);

  return (
    <div
      ref={host}
      className={readOnly ? "viz-code viz-code-locked" : "viz-code"}
      style={height ? { height } : undefined}
    />
  );
}

function lock(on: boolean) {
  return [
    EditorState.readOnly.of(on),
    EditorView.editable.of(!on),
    // What cannot be changed can still be scrolled by keys.
    on ? EditorView.contentAttributes.of({ tabindex: "0" }) : [],
  ];
}

function markOf(doc: Text, d: Diagnostic): Mark {
  const { from, to } = position(
    (line) => {
      const found = doc.line(line);
      return { from: found.from, text: found.text };
    },
    doc.lines,
    d.line,
    d.column,
  );
  return { from, to, severity: d.severity, message: d.message };
}
