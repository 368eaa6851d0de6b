import createClient, { type FetchOptions, type FetchResponse } from "openapi-fetch";
import { problemOf, unreachable } from "./error";
import { sessionKey } from "./key";
import type { paths } from "./types";

/**
 * How the portal asks the API. Everything goes through `ask`: it adds the key that a session needs
 * beside its cookie, and turns whatever is not an answer into an ApiError.
 */
let onSignedOut: () => void = () => {};

/** Called when an answer says that the session is over. */
export function whenSignedOut(cb: () => void) {
  onSignedOut = cb;
}

async function ask(request: Request): Promise<Response> {
  const headers = new Headers(request.headers);
  const key = sessionKey();
  if (key) headers.set("x-berth-session-key", key);
  let response: Response;
  try {
    response = await fetch(new Request(request, { headers, credentials: "same-origin" }));
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw unreachable();
  }
  if (response.ok) return response;
  const problem = await problemOf(response);
  if (problem.signedOut && new URL(request.url).pathname !== "/v1/session") onSignedOut();
  throw problem;
}

/** What is read by hand: a stream, or a file. */
export function request(at: string, init: RequestInit = {}): Promise<Response> {
  return ask(new Request(new URL(at, location.origin), init));
}

/** What a terminal speaks, and the key: to a terminal a browser sends no headers of ours. */
export function protocols(): string[] {
  const key = sessionKey();
  return ["berth.shell", ...(key ? [`berth.key.${key}`] : [])];
}

type Method = "get" | "post" | "put" | "patch" | "delete";
type PathWith<M extends Method> = {
  [P in keyof paths]: paths[P] extends { [K in M]: unknown } ? P : never;
}[keyof paths];

/**
 * The library takes parameters and bodies with fields that the API's description does not have. Here
 * they are mistakes: what was renamed in the API must not be sent under its old name.
 */
type Ask<M extends Method> = <P extends PathWith<M>>(
  path: P,
  ...options: Record<never, never> extends FetchOptions<paths[P][M]>
    ? [FetchOptions<paths[P][M]>?]
    : [FetchOptions<paths[P][M]>]
) => Promise<FetchResponse<paths[P][M] & object, Record<never, never>, "application/json">>;

interface Api {
  GET: Ask<"get">;
  POST: Ask<"post">;
  PUT: Ask<"put">;
  PATCH: Ask<"patch">;
  DELETE: Ask<"delete">;
}

/** The typed client: `api.GET("/v1/jobs/{job}", { params: { path: { job } } })`. It throws ApiError. */
export const api = createClient<paths, "application/json">({
  baseUrl: typeof location === "undefined" ? "http://localhost" : location.origin,
  fetch: ask,
}) as Api;

/** Data of a call that throws on failure, so that there always is some. */
export async function data<T>(call: Promise<{ data?: T }>): Promise<T> {
  return (await call).data as T;
}

type Query = Record<string, string | number | boolean | null | undefined>;

/** For an address that the server has given; `link` has those of the API's description. */
export function address(path: string, query: Query = {}): string {
  const search = new URLSearchParams();
  for (const [key, value] of Object.entries(query))
    if (value !== undefined && value !== null && value !== "") search.set(key, String(value));
  const text = search.toString();
  return text ? `${path}?${text}` : path;
}

type GetOf<P extends PathWith<"get">> = paths[P]["get"];
type Where<P extends PathWith<"get">> = Pick<GetOf<P>["parameters"], "path" | "query">;

/** The address of what is not read as JSON: a file, a stream, a terminal. */
export function link<P extends PathWith<"get">>(path: P, where: Where<P>): string {
  const { path: names = {}, query } = where as { path?: Record<string, string>; query?: Query };
  return address(
    path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(names[name] ?? "")),
    query,
  );
}

type LineOf<P extends PathWith<"get">> =
  GetOf<P> extends { responses: { 200: { content: { "application/x-ndjson": infer Line } } } }
    ? Line
    : never;

/** Lines of JSON as they come, as the log of a job has them when it is followed. */
export async function* lines<P extends PathWith<"get">>(
  path: P,
  where: Where<P>,
  signal: AbortSignal,
): AsyncGenerator<LineOf<P>[]> {
  const headers = { accept: "application/x-ndjson" };
  const response = await request(link(path, where), { headers, signal });
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  if (!reader) return;
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    rest += value ?? "";
    const parts = rest.split("\n");
    rest = done ? "" : (parts.pop() ?? "");
    const batch = parts.filter((p) => p.trim() !== "").map((p) => JSON.parse(p) as LineOf<P>);
    if (batch.length > 0) yield batch;
    if (done) return;
  }
}
