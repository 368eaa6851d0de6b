// A real OpenID Connect provider, the one that the server's own tests have.
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { resolve } from "node:path";
import { PATIENCE } from "./server";

const ROOT = resolve(import.meta.dirname, "../../..");

export type Provider = {
  url: string;
  tell: (what: "client" | "people" | "rotate", body: unknown) => Promise<void>;
  stop: () => void;
};

export async function startProvider(): Promise<Provider> {
  const folder = execFileSync(`${ROOT}/.ci/oidc-tools`, { encoding: "utf8" })
    .trim()
    .split("\n")
    .pop();
  const { child, url } = await started(folder ?? "");
  const tell: Provider["tell"] = async (what, body) => {
    const answer = await fetch(`${url}/test/${what}`, {
      method: "POST",
      body: JSON.stringify(body),
    });
    if (!answer.ok) throw new Error(`${what}: ${answer.status} ${await answer.text()}`);
  };
  return { url, tell, stop: () => child.kill() };
}

/**
 * On a busy machine Node was seen to stop for good while it loaded the provider's modules, so the
 * provider is started once more when it prints no address.
 */
async function started(folder: string): Promise<{ child: ChildProcess; url: string }> {
  const begin = () =>
    spawn("node", [`${ROOT}/tools/oidc/provider.mjs`, folder], {
      stdio: ["pipe", "pipe", "inherit"],
    });
  const first = begin();
  try {
    return { child: first, url: await address(first) };
  } catch (error) {
    console.error(`starting the provider once more: ${error}`);
    first.kill("SIGKILL");
  }
  const second = begin();
  return { child: second, url: await address(second) };
}

function address(child: ChildProcess): Promise<string> {
  return new Promise((found, failed) => {
    let said = "";
    setTimeout(() => failed(new Error("the provider prints no address")), PATIENCE).unref();
    child.stdout?.on("data", (text) => {
      said += text;
      const url = /https?:\/\/\S+/.exec(said)?.[0];
      if (url) found(url.replace(/\/$/, ""));
    });
    child.once("exit", () => failed(new Error("the provider ended")));
  });
}
