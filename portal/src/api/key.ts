/**
 * The key of the session. A browser sends its cookie to every port of a host, and so to jobs that
 * answer there; the key is kept for this very origin, and both are asked for. Tabs share it.
 */
const AT = "berth.session-key";
const LANDING = "berth.landing";
const FRAGMENT = /^#session-key=([0-9a-f_]+)$/;

/** Where nothing may be kept, a tab is signed in for as long as it is open. */
let own: string | undefined;

export function sessionKey(): string | undefined {
  try {
    return localStorage.getItem(AT) ?? own;
  } catch {
    return own;
  }
}

export function keepSessionKey(key: string | undefined) {
  own = key;
  try {
    if (key === undefined) localStorage.removeItem(AT);
    else localStorage.setItem(AT, key);
  } catch {}
}

/** Called when another tab signs in or out: whatever was read here belongs to another session then. */
export function whenKeyChanges(cb: () => void) {
  window.addEventListener("storage", (e) => {
    // Without a name all that is kept was cleared.
    if (e.key === AT || e.key === null) cb();
  });
}

interface Landing {
  mark: string;
  next: string;
}

function landing(): Landing | undefined {
  try {
    const kept = JSON.parse(sessionStorage.getItem(LANDING) ?? "null") as Landing | null;
    return kept?.mark ? kept : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Where a sign-in by a provider that begins in this tab comes back to. Only this tab knows its mark, so
 * another person's link does not sign this browser in as that person.
 */
export function landingFor(next: string): string {
  const random = () =>
    Array.from(crypto.getRandomValues(new Uint8Array(16)), (b) => b.toString(16).padStart(2, "0"));
  const mark = landing()?.mark ?? random().join("");
  try {
    sessionStorage.setItem(LANDING, JSON.stringify({ mark, next }));
  } catch {}
  return `/sign-in?mark=${mark}`;
}

/** Takes the key that a sign-in has put behind the address, before other scripts read the address. */
export function takeSessionKey(at: Location, past: History): void {
  const key = FRAGMENT.exec(at.hash)?.[1];
  if (key === undefined) return;
  const mark = new URLSearchParams(at.search).get("mark");
  const begun = landing();
  try {
    sessionStorage.removeItem(LANDING);
  } catch {}
  const ours = at.pathname === "/sign-in" && begun !== undefined && begun.mark === mark;
  if (ours) keepSessionKey(key);
  // Only to a page of the portal: never to another host.
  const next = ours && /^\/(?![/\\])/.test(begun.next) ? begun.next : "/";
  past.replaceState(null, "", next);
}
