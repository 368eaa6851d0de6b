import { useQuery } from "@tanstack/react-query";
import { Navigate, useSearch } from "@tanstack/react-router";
import { sessionQuery } from "@/api/session";
import { oneOf, type Raw, str } from "@/lib/search";
import { SignIn } from "./SignIn";
import { FAILURE_CODES, type FailureCode, signInFailure } from "./sign-in-failures";

/** `?code=BRT0034` says why a sign-in failed. */
export function signInSearch(raw: Raw): { next?: string; code?: FailureCode } {
  const next = str(raw, "next");
  const code = oneOf(raw, "code", FAILURE_CODES);
  return {
    // Only to a page of the portal: never to another host.
    ...(next && /^\/(?![/\\])/.test(next) && { next }),
    ...(code && { code }),
  };
}

export function SignInPage() {
  const { next = "/", code } = useSearch({ from: "/sign-in" });
  const session = useQuery(sessionQuery);
  if (session.data) return <Navigate to={next as "/"} replace />;
  return <SignIn next={next} error={code && signInFailure(code)} />;
}
