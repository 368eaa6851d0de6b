import type { FieldError, Problem } from "./types";

/** What went wrong with a request, in the words of the API. */
export class ApiError extends Error {
  override name = "ApiError";
  readonly status: number;
  /** `BRT0008`; none where no server answered, or something that is not Berth. */
  readonly code: string | undefined;
  readonly title: string;
  readonly next: string | undefined;
  readonly fields: FieldError[];
  /** This very request; the server's log names it too. */
  readonly instance: string | undefined;
  /** MLflow's error code, such as RESOURCE_DOES_NOT_EXIST. */
  readonly kind: string | undefined;

  constructor(p: Partial<Problem> & { status: number; title: string; kind?: string | undefined }) {
    super(p.detail || p.title);
    this.status = p.status;
    this.code = p.code;
    this.title = p.title;
    this.next = p.next;
    this.fields = p.errors ?? [];
    this.instance = p.instance ?? undefined;
    this.kind = p.kind;
  }

  /** The page of the code, within the portal. */
  get page(): string | undefined {
    return this.code && helpPage(this.code);
  }

  get signedOut(): boolean {
    return this.status === 401;
  }
}

/** The page of a code or of a reason. The portal carries them along: it needs no other network. */
export function helpPage(code: string): string {
  return `/help/${encodeURIComponent(code)}`;
}

export function unreachable(): ApiError {
  return new ApiError({
    status: 0,
    title: "The server does not answer",
    detail: "The server does not answer.",
    next: "The portal tries again by itself. If it stays so, see whether `berth up` runs and whether the network lets you through.",
  });
}

export async function problemOf(response: Response): Promise<ApiError> {
  let body: Partial<Problem> & { error_code?: string; message?: string } = {};
  try {
    body = (await response.clone().json()) as typeof body;
  } catch {}
  return new ApiError({
    ...body,
    status: response.status,
    title: body.title || body.error_code || `The server answered ${response.status}`,
    kind: body.error_code,
    // MLflow's routes have the message in another field.
    detail: body.detail ?? body.message ?? "",
  });
}

export function asApiError(error: unknown): ApiError {
  if (error instanceof ApiError) return error;
  return new ApiError({
    status: 0,
    title: "The portal failed here",
    detail: error instanceof Error ? error.message : String(error),
  });
}
