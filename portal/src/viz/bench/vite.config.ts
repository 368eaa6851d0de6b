// Builds the pages of this folder as the portal is built, to measure what people get:
//   npx vite build --config src/viz/bench/vite.config.ts
// They land in node_modules/.bench and never in dist.

import tailwindcss from "@tailwindcss/vite";
import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

const here = (path: string) => new URL(path, import.meta.url).pathname;

export default defineConfig({
  root: here("."),
  base: "./",
  plugins: [react(), tailwindcss()],
  resolve: { alias: { "@": here("../..") } },
  build: {
    target: "es2023",
    outDir: here("../../../node_modules/.bench"),
    emptyOutDir: true,
    rollupOptions: { input: { bench: here("bench.html"), gallery: here("gallery.html") } },
  },
});
