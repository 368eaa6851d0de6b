// A real Chromium, and what tests do with every page.
import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { type Browser, chromium, type Page } from "playwright-core";
import { expect } from "vitest";

const PLACES = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

export type Theme = "light" | "dark";

export function openBrowser(): Promise<Browser> {
  const found = process.env.CHROMIUM ?? PLACES.find((place) => existsSync(place));
  if (!found)
    throw new Error("There is no Chromium. On Debian and Ubuntu: sudo apt-get install chromium");
  const quiet = [
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
  ];
  // A sandbox of its own needs rights that containers seldom give; the pages are ours.
  return chromium.launch({
    executablePath: found,
    args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", ...quiet],
  });
}

/** A page that fails its test when a script throws or the content security policy refuses something. */
export async function openPage(
  browser: Browser,
  options: { width?: number; theme?: Theme } = {},
): Promise<Page & { faults: string[] }> {
  const context = await browser.newContext({
    viewport: { width: options.width ?? 1280, height: 900 },
    colorScheme: options.theme ?? "light",
    reducedMotion: "reduce",
    acceptDownloads: true,
  });
  const page = (await context.newPage()) as Page & { faults: string[] };
  page.setDefaultTimeout(30_000);
  page.faults = [];
  page.on("pageerror", (error) => page.faults.push(String(error)));
  page.on("console", (message) => {
    if (/Content Security Policy/i.test(message.text())) page.faults.push(message.text());
  });
  return page;
}

export async function signIn(page: Page, url: string, token: string): Promise<void> {
  await page.goto(`${url}/sign-in`);
  await page.getByRole("textbox", { name: "Token" }).fill(token);
  await page.getByRole("button", { name: "Sign in", exact: true }).click();
  await page.getByRole("navigation", { name: "Pages" }).waitFor();
}

/** What the portal's scripts send beside the cookie, and nobody else knows. */
export async function sessionHeaders(page: Page): Promise<Record<string, string>> {
  const key = await page.evaluate(() => localStorage.getItem("berth.session-key"));
  return key ? { "x-berth-session-key": key } : {};
}

/** What axe calls serious or critical. */
export async function seriousViolations(page: Page): Promise<string[]> {
  // Evaluated from outside the page, so its content security policy has no say.
  await page.evaluate(AXE);
  const found = await page.evaluate(() =>
    (globalThis as any).axe.run(document, { resultTypes: ["violations"] }),
  );
  return found.violations
    .filter((one: any) => one.impact === "serious" || one.impact === "critical")
    .map(
      (one: any) =>
        `${one.id}: ${one.help} (${one.nodes
          .map((node: any) => node.target.join(" "))
          .slice(0, 4)
          .join("; ")})`,
    );
}

export function expectNoFaults(page: { faults: string[] }): void {
  expect(page.faults).toEqual([]);
}
