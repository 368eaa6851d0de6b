// What the viewer keeps: the store's state once a frame, and the search.

import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import { expression, type Query } from "./match";
import { Search } from "./search";
import type { LogStore } from "./store";

/** The store's version, at most once a frame however often lines come. */
export function useVersion(store: LogStore): number {
  const [version, setVersion] = useState(store.version);
  useEffect(() => {
    let frame = 0;
    const changed = () => {
      frame ||= requestAnimationFrame(() => {
        frame = 0;
        setVersion(store.version);
      });
    };
    changed();
    const stop = store.subscribe(changed);
    return () => {
      stop();
      cancelAnimationFrame(frame);
    };
  }, [store]);
  return version;
}

export interface Searching {
  /** Null without a query. */
  search: Search | null;
  expression: RegExp | null;
  error: string | null;
  /** Changes when more was found. */
  progress: number;
}

const WAIT_MS = 120;

export function useSearch(store: LogStore, query: Query, version: number): Searching {
  const [search, setSearch] = useState<Search | null>(null);
  const [progress, setProgress] = useState(0);
  const frame = useRef(0);
  const tell = useCallback(() => {
    frame.current ||= requestAnimationFrame(() => {
      frame.current = 0;
      setProgress((n) => n + 1);
    });
  }, []);
  const { text, regex, matchCase } = query;
  useEffect(() => {
    if (text === "") {
      setSearch(null);
      return;
    }
    let made: Search | null = null;
    const timer = setTimeout(() => {
      made = new Search(store, { text, regex, matchCase }, tell);
      setSearch(made);
    }, WAIT_MS);
    return () => {
      clearTimeout(timer);
      made?.stop();
    };
  }, [store, text, regex, matchCase, tell]);
  useEffect(() => {
    void search?.run();
  }, [search, version]);
  const made = useMemo(
    () => (text === "" ? null : expression({ text, regex, matchCase })),
    [text, regex, matchCase],
  );
  return {
    search: text === "" ? null : search,
    expression: made instanceof RegExp ? made : null,
    error: typeof made === "string" ? made : (search?.found.error ?? null),
    progress,
  };
}
