// End-to-end tests: a real server and a real browser. `npm run e2e` runs the short ones,
// `npm run e2e:long` all of them.
import { defineConfig } from "vitest/config";

const long = process.env.E2E_LONG === "yes";
const shots = process.env.E2E_SHOTS === "yes";
const evidence = process.env.E2E_EVIDENCE === "yes";

export default defineConfig({
  test: {
    include: shots
      ? ["e2e/shots/*.e2e.ts"]
      : evidence
        ? ["e2e/evidence/*.e2e.ts"]
        : ["e2e/short/*.e2e.ts", ...(long ? ["e2e/long/*.e2e.ts"] : [])],
    testTimeout: 180_000,
    hookTimeout: 180_000,
    // Two cores: one browser at a time.
    fileParallelism: false,
    retry: 0,
  },
});
