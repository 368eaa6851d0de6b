import { shell } from "@/design/CommandBar";

/** A browser holds a file in memory until it is whole. What is larger goes by the command line. */
const MOST_BYTES = 1024 ** 3;

export function isTooLarge(bytes: number): boolean {
  return bytes > MOST_BYTES;
}

export function copyCommand(job: string, path: string): string {
  return `berth cp ${shell(`${job}:${path}`)} .`;
}
