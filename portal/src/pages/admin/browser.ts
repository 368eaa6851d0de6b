// What a browser calls itself, as people call it.

const BROWSERS: [pattern: RegExp, name: string][] = [
  [/\bEdg(?:e|A|iOS)?\/(\d+)/, "Edge"],
  [/\bOPR\/(\d+)/, "Opera"],
  [/\b(?:Firefox|FxiOS)\/(\d+)/, "Firefox"],
  [/\bHeadlessChrome\/(\d+)/, "Headless Chrome"],
  [/\b(?:Chrome|CriOS)\/(\d+)/, "Chrome"],
  [/\bVersion\/(\d+).*\bSafari\//, "Safari"],
];
const SYSTEMS: [pattern: RegExp, name: string][] = [
  [/\bAndroid\b/, "Android"],
  [/\b(?:iPhone|iPad)\b/, "iOS"],
  [/\bWindows\b/, "Windows"],
  [/\bMac OS X\b/, "macOS"],
  [/\bCrOS\b/, "ChromeOS"],
  [/\bLinux\b/, "Linux"],
];

/** `Firefox 128 on Linux`; the text itself where it is of no browser that we know. */
export function browserOf(agent: string): string {
  const found = BROWSERS.find(([pattern]) => pattern.test(agent));
  if (!found) return agent;
  const version = found[0].exec(agent)?.[1];
  const system = SYSTEMS.find(([pattern]) => pattern.test(agent))?.[1];
  return `${found[1]} ${version}${system ? ` on ${system}` : ""}`;
}
