import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useLocation } from "@tanstack/react-router";
import { Fragment, type ReactNode, useEffect, useState } from "react";
import { forgetUser } from "@/api/forget";
import { meQuery, sessionQuery } from "@/api/session";
import { ErrorState } from "@/design";
import { setStoredUser } from "@/lib/stored";
import { FramePending } from "./Fallbacks";
import { SignIn } from "./SignIn";

/** Lets those in who are signed in. Others sign in here, and see what they came for without a detour. */
export function Gate({ children }: { children: ReactNode }) {
  const session = useQuery(sessionQuery);
  const me = useQuery({ ...meQuery, enabled: session.data !== null });
  const href = useLocation({ select: (l) => l.href });
  const user = me.data?.user;
  if (user) setStoredUser(user);
  const client = useQueryClient();
  useEffect(() => {
    if (session.data !== null) return;
    document.title = "Sign in · Berth";
    // The next user sees nothing that was read in the name of the one who left.
    forgetUser(client);
  }, [session.data, client]);

  if (session.data === null) return <SignIn next={href} />;
  const error = session.error ?? me.error;
  if (error && !me.data)
    return (
      <main className="h-full">
        <h1 className="sr-only">Berth</h1>
        <ErrorState
          error={error}
          onRetry={() => {
            void session.refetch();
            if (session.data) void me.refetch();
          }}
        />
      </main>
    );
  if (!session.data || !me.data) return <Coming />;
  // Pages of another session begin anew: what they hold themselves belongs to the one before.
  return <Fragment key={session.data.id}>{children}</Fragment>;
}

/** At first nothing, which a quick answer would have to take back a moment later. */
function Coming() {
  const [slow, setSlow] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setSlow(true), 300);
    return () => clearTimeout(timer);
  }, []);
  return slow ? <FramePending /> : null;
}
