/*
 * Pictures of pages: node e2e/shots.mjs OUT ADDRESS… ; widths 1440, 1280 and 390, both themes.
 * BASE (http://127.0.0.1:7119), WIDTHS, THEMES and KEYS (pressed one after the other) can be set.
 */
import { mkdirSync } from "node:fs";
import { chromium } from "playwright-core";

const [out, ...paths] = process.argv.slice(2);
const {
  BASE = "http://127.0.0.1:7119",
  WIDTHS = "1440,1280,390",
  THEMES = "light,dark",
  KEYS,
} = process.env;
mkdirSync(out, { recursive: true });
const browser = await chromium.launch({
  executablePath: "/usr/bin/chromium",
  args: [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
  ],
});
for (const theme of THEMES.split(","))
  for (const width of WIDTHS.split(",").map(Number)) {
    const page = await browser.newPage({
      viewport: { width, height: width < 500 ? 844 : 860 },
      colorScheme: theme,
    });
    page.on(
      "console",
      (m) =>
        ["error", "warning"].includes(m.type()) && console.log(`${theme} ${width} ${m.text()}`),
    );
    page.on("pageerror", (e) => console.log(`${theme} ${width} ${e.message}`));
    for (const path of paths) {
      await page.goto(BASE + path);
      await page.waitForSelector("h1");
      await page.waitForTimeout(900);
      for (const key of KEYS?.split(" ") ?? []) {
        await page.keyboard.press(key);
        await page.waitForTimeout(250);
      }
      const name = path.replace(/[^a-z0-9]+/gi, "-").replace(/^-|-$/g, "") || "home";
      await page.screenshot({ path: `${out}/${name}-${width}-${theme}.png` });
    }
    await page.close();
  }
await browser.close();
