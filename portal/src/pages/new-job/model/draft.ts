/** What was written and not submitted yet survives a reload, in this tab only. */
const address = (user: string) => `berth:${user}:new-job`;
export const EMPTY = "gpus: 1\n";
const MOST = 200_000;

export function loadDraft(user: string): string | undefined {
  try {
    return sessionStorage.getItem(address(user)) ?? undefined;
  } catch {
    return undefined;
  }
}

export function saveDraft(user: string, text: string | undefined) {
  try {
    if (text === undefined || text === EMPTY || text.trim() === "")
      sessionStorage.removeItem(address(user));
    else if (text.length <= MOST) sessionStorage.setItem(address(user), text);
  } catch {}
}
