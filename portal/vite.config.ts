import tailwindcss from "@tailwindcss/vite";
import react from "@vitejs/plugin-react";
import { defineConfig, type ProxyOptions } from "vite";
import { head } from "./vite/theme.ts";

// `npm run dev` talks to the server at BERTH_URL, or to the stand-in of `npm run mock`.
const target = process.env.BERTH_URL ?? "http://127.0.0.1:7119";
const token = process.env.BERTH_TOKEN;
const proxied: ProxyOptions = {
  target,
  headers: token ? { authorization: `Bearer ${token}` } : {},
};
const proxy: Record<string, ProxyOptions> = {
  "/v1": proxied,
  "/ajax-api": proxied,
  "/readyz": proxied,
};

export default defineConfig({
  plugins: [react(), tailwindcss(), head()],
  resolve: { alias: { "@": new URL("./src", import.meta.url).pathname } },
  server: { proxy, host: "127.0.0.1", watch: { ignored: ["**/dist/**", "**/shots/**"] } },
  preview: { proxy, host: "127.0.0.1" },
  build: {
    target: "es2023",
    manifest: true,
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
  },
  test: { include: ["src/**/*.test.{ts,tsx}", "tests/**/*.test.ts"] },
} as import("vite").UserConfig);
