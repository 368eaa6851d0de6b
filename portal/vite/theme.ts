import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import type { Plugin } from "vite";

const SOURCE = new URL("../src/app/theme-boot.js", import.meta.url);

/**
 * Puts the script that sets the theme before the first paint into the head, as a file of its own: the
 * server's policy allows no inline script, and a module would run too late. The font is fetched along
 * with it, so that the text does not jump.
 */
export function head(): Plugin {
  let built = false;
  const code = () => readFileSync(SOURCE, "utf8");
  const name = () =>
    `assets/theme-${createHash("sha256").update(code()).digest("base64url").slice(0, 8)}.js`;
  return {
    name: "berth-head",
    configResolved(config) {
      built = config.command === "build";
    },
    configureServer(server) {
      server.middlewares.use("/assets/theme.js", (_, res) => {
        res.setHeader("content-type", "text/javascript");
        res.end(code());
      });
    },
    generateBundle() {
      this.emitFile({ type: "asset", fileName: name(), source: code() });
    },
    transformIndexHtml: {
      order: "post",
      handler(_, ctx) {
        const font = Object.keys(ctx.bundle ?? {}).find((f) => f.endsWith(".woff2"));
        const tags: import("vite").HtmlTagDescriptor[] = [
          {
            tag: "script",
            attrs: { src: built ? `/${name()}` : "/assets/theme.js" },
            injectTo: "head-prepend",
          },
        ];
        if (font)
          tags.push({
            tag: "link",
            attrs: {
              rel: "preload",
              href: `/${font}`,
              as: "font",
              type: "font/woff2",
              crossorigin: "",
            },
            injectTo: "head",
          });
        return tags;
      },
    },
  };
}
