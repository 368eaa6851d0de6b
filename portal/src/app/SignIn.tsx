import { useQuery, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, type ReactNode, useMemo, useState } from "react";
import { address } from "@/api/client";
import { landingFor } from "@/api/key";
import { sessionQuery, signIn, signInOptionsQuery } from "@/api/session";
import type { QueryOf } from "@/api/types";
import { AnchorButton, Button, Field, Input } from "@/design";
import { ErrorNote } from "@/design/States";
import { Logo } from "./Logo";

/** A page with one small form in its middle: signing in, approving a device. */
export function Card({ title, children }: { title: string; children: ReactNode }) {
  return (
    <main className="grid min-h-full place-items-center bg-bg p-4">
      <div className="w-full max-w-88">
        <div className="mb-5 flex items-center gap-2.5">
          <Logo size={24} />
          <h1 className="font-semibold text-16">{title}</h1>
        </div>
        {children}
      </div>
    </main>
  );
}

const toNext = (next: string): QueryOf<"/v1/session/oidc/start"> => ({ next });

export function SignIn({ next, error: given }: { next: string; error?: unknown }) {
  const client = useQueryClient();
  const options = useQuery(signInOptionsQuery);
  const [token, setToken] = useState("");
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(given);
  const oidc = options.data?.oidc;
  const lands = useMemo(() => landingFor(next), [next]);
  const byToken = options.data?.token ?? true;

  async function submit(e: FormEvent) {
    e.preventDefault();
    if (!token.trim() || busy) return;
    setBusy(true);
    setError(undefined);
    try {
      const session = await signIn(token.trim());
      client.setQueryData(sessionQuery.queryKey, session);
    } catch (cause) {
      setError(cause);
      setBusy(false);
    }
  }

  return (
    <Card title="Sign in to Berth">
      <div className="flex flex-col gap-4">
        {oidc && (
          <AnchorButton
            look="primary"
            href={address(oidc.start, toNext(lands))}
            className="h-9! w-full"
          >
            Continue with {oidc.name}
          </AnchorButton>
        )}
        {oidc && byToken && (
          <div className="flex items-center gap-3 text-12 text-faint before:h-px before:flex-1 before:bg-line after:h-px after:flex-1 after:bg-line">
            or with a token
          </div>
        )}
        {byToken && (
          <form onSubmit={submit} className="flex flex-col gap-3">
            <Field
              label="Token"
              hint={
                <>
                  From <code>berth token create</code>, or <code>admin.token</code> in the server's
                  folder.
                </>
              }
            >
              {(field) => (
                <Input
                  {...field}
                  type="password"
                  name="token"
                  mono
                  autoFocus={!oidc}
                  autoComplete="current-password"
                  value={token}
                  onChange={(e) => setToken(e.target.value)}
                  className="h-9!"
                />
              )}
            </Field>
            <Button
              type="submit"
              look={oidc ? "secondary" : "primary"}
              busy={busy}
              disabled={!token.trim()}
              className="h-9! w-full"
            >
              Sign in
            </Button>
          </form>
        )}
        {error !== undefined && error !== null && <ErrorNote error={error} />}
      </div>
    </Card>
  );
}
