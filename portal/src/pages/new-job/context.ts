import { createContext, useContext, useEffect, useRef, useState } from "react";
import type { JobDoc, Value } from "./model/doc";
import type { Problem } from "./model/problems";

/** What the fields of the form read and write: one file, by its keys. */
export interface JobForm {
  job: JobDoc;
  get(...path: string[]): Value | undefined;
  /** `undefined` and empty text take the key away. */
  set(path: string, value: Value | undefined): void;
  problem(key: string): Problem | undefined;
  /** To the YAML, where what has no field stands. */
  showYaml(): void;
  /** The YAML has a mistake: what the form would write has no place. */
  locked: boolean;
}

export const JobFormContext = createContext<JobForm | null>(null);

export function useJobForm(): JobForm {
  const form = useContext(JobFormContext);
  if (!form) throw new Error("no form here");
  return form;
}

/**
 * Text of a field while it is typed. The file may not hold it letter by letter (a newline at the end,
 * half a pair), so the field keeps its own and follows the file only when that changed elsewhere.
 */
export function useTyped<T>(
  outside: T,
  commit: (value: T) => void,
  same: (value: T) => string = String,
): [T, (value: T) => void] {
  const [typed, setTyped] = useState(outside);
  const known = useRef(same(outside));
  const now = same(outside);
  useEffect(() => {
    if (now === known.current) return;
    known.current = now;
    setTyped(outside);
  }, [now, outside]);
  return [
    typed,
    (value) => {
      known.current = same(value);
      setTyped(value);
      commit(value);
    },
  ];
}

export const isText = (value: Value | undefined): value is string | undefined =>
  value === undefined || typeof value === "string";
