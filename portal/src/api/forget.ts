import type { QueryClient } from "@tanstack/react-query";
import { whenKeyChanges } from "./key";
import { forgetLive } from "./live";

/** Forgets what was read in the name of a user: answers, the stream of events, and alerts. */
export function forgetUser(client: QueryClient) {
  forgetLive();
  client.removeQueries({ predicate: (q) => q.queryKey[0] !== "session" });
  client.getMutationCache().clear();
}

/**
 * When another tab signs in or out, this one forgets its user at once, also while it is hidden, and asks
 * who is signed in now. Until the answer is there, the gate shows nothing.
 */
export function watchSession(client: QueryClient) {
  whenKeyChanges(() => {
    forgetUser(client);
    void client.resetQueries({ queryKey: ["session"] });
  });
}
