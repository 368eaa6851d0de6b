// Makes src/api/schema.d.ts from the API's description, so that a changed route breaks the build.
import { readFileSync, writeFileSync } from "node:fs";
import openapi, { astToString } from "openapi-typescript";

const from = new URL("../../docs/openapi.json", import.meta.url);
const to = new URL("../src/api/schema.d.ts", import.meta.url);
const text = astToString(
  await openapi(JSON.parse(readFileSync(from, "utf8")), { defaultNonNullable: false }),
);
const head = "// Made by `npm run types` from docs/openapi.json. Not for editing.\n";
let old = "";
try {
  old = readFileSync(to, "utf8");
} catch {}
if (old !== head + text) writeFileSync(to, head + text);
