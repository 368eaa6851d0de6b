import { queryOptions, useQuery, useQueryClient } from "@tanstack/react-query";
import { api, data } from "./client";
import { ApiError } from "./error";
import { keepSessionKey } from "./key";
import { type May, may, type Parents, type Permission, type Thing } from "./rights";
import type { Me, Session, Team } from "./types";

/** `null` when nobody is signed in. */
export const sessionQuery = queryOptions({
  queryKey: ["session"],
  queryFn: async ({ signal }): Promise<Session | null> => {
    try {
      return await data(api.GET("/v1/session", { signal }));
    } catch (error) {
      if (error instanceof ApiError && error.signedOut) return null;
      throw error;
    }
  },
  staleTime: 60_000,
  // The server renews a session that is used.
  refetchInterval: 10 * 60_000,
  retry: 2,
});

export const meQuery = queryOptions({
  queryKey: ["me"],
  queryFn: ({ signal }) => data(api.GET("/v1/me", { signal })),
  staleTime: 60_000,
});

export const signInOptionsQuery = queryOptions({
  queryKey: ["session", "options"],
  queryFn: ({ signal }) => data(api.GET("/v1/session/options", { signal })),
  staleTime: 5 * 60_000,
});

export async function signIn(token: string): Promise<Session> {
  const { session, key } = await data(api.POST("/v1/session", { body: { token } }));
  keepSessionKey(key);
  return session;
}

/** Where the browser goes to leave the provider of identities, too; nowhere where there is none. */
export async function signOut(): Promise<string | undefined> {
  const { logout_url } = await data(api.DELETE("/v1/session"));
  keepSessionKey(undefined);
  return logout_url ?? undefined;
}

export function deviceRequest(code: string, signal: AbortSignal) {
  return data(api.GET("/v1/session/device/{code}", { params: { path: { code } }, signal }));
}

export function answerDevice(code: string, approve: boolean) {
  return data(
    api.POST("/v1/session/device/{code}", { params: { path: { code } }, body: { approve } }),
  );
}

export function useSession() {
  return useQuery(sessionQuery);
}

/** Who is signed in. Within the frame there always is somebody. */
export function useMe(): Me | undefined {
  return useQuery(meQuery).data;
}

/** Teams change seldom, and rights follow them. */
export const teamsQuery = queryOptions({
  queryKey: ["teams"],
  queryFn: async ({ signal }) => (await data(api.GET("/v1/teams", { signal }))).items,
  staleTime: 5 * 60_000,
});

const namesOf = (teams: Team[]): readonly string[] => teams.map((t) => t.name);
const NO_TEAMS: readonly string[] = [];

/** Of all teams that there are. */
export function useTeamNames(): readonly string[] {
  return useQuery({ ...teamsQuery, select: namesOf }).data ?? NO_TEAMS;
}

const parentsOf = (teams: Team[]): Parents =>
  new Map(teams.flatMap((t) => (t.parent ? [[t.name, t.parent] as const] : [])));

/** Whether one may: `useMay("JobsControl", { team: job.team, user: job.user })`. */
export function useMay(permission: Permission, thing?: Thing): May {
  return useMayFor()(permission, thing);
}

/** The same for many things: a function, for tables and bulk actions. */
export function useMayFor(): (permission: Permission, thing?: Thing) => May {
  const me = useMe();
  const parents = useQuery({ ...teamsQuery, select: parentsOf }).data;
  return (permission, thing) => may(me, permission, thing, parents);
}

/** The gate then forgets what was read in the name of the one who left. */
export function useSignOut() {
  const client = useQueryClient();
  return async () => {
    const next = await signOut();
    client.setQueryData(sessionQuery.queryKey, null);
    if (next) location.assign(next);
  };
}
