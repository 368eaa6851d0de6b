// What a browser has to load.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { atMost, type Section } from "../support/report";

const SIZES = join(import.meta.dirname, "../../node_modules/.sizes.json");

/** The build checks the same and writes down what it found. */
export function bundle(): Section {
  const found: { name: string; kb: number; most: number }[] = JSON.parse(
    readFileSync(SIZES, "utf8"),
  );
  return {
    title: "What a browser loads",
    text: "JavaScript and styles of the production build, minified and compressed by gzip. The build fails above these limits.",
    rows: found.map(({ name, kb, most }) => atMost(name, kb, "KB", most)),
  };
}
