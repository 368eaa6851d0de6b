import { useQuery } from "@tanstack/react-query";
import { Navigate, useSearch } from "@tanstack/react-router";
import { ApiError } from "@/api/error";
import { sessionQuery } from "@/api/session";
import { type Raw, str } from "@/lib/search";
import { SignIn } from "./SignIn";

/** Where the provider sends people back to when it did not work: `?code=BRT0004&detail=…`. */
export function signInSearch(raw: Raw): { next?: string; code?: string; detail?: string } {
  const next = str(raw, "next");
  const code = str(raw, "code");
  const detail = str(raw, "detail");
  return {
    // Only to a page of the portal: never to another host.
    ...(next && /^\/(?![/\\])/.test(next) && { next }),
    ...(code && { code }),
    ...(detail && { detail }),
  };
}

export function SignInPage() {
  const { next = "/", code, detail } = useSearch({ from: "/sign-in" });
  const session = useQuery(sessionQuery);
  if (session.data) return <Navigate to={next as "/"} replace />;
  const error =
    code || detail
      ? new ApiError({
          status: 401,
          title: "Signing in did not work",
          detail: detail ?? "Signing in did not work.",
          ...(code && { code: code as never }),
        })
      : undefined;
  return <SignIn next={next} error={error} />;
}
