import { ApiError } from "@/api/error";

/**
 * Why a sign-in failed, for the codes that the address of the sign-in page may name. The words are ours:
 * other sites can lead people to that address, and must not put words on our page.
 */
const FAILURES = {
  BRT0031: [
    "A page of another site began this sign-in.",
    "Begin here, if you want to sign in to Berth.",
  ],
  BRT0032: ["There were too many attempts to sign in.", "Wait a minute, then try again."],
  BRT0033: ["The identity provider's answer did not match this sign-in.", "Sign in again."],
  BRT0034: [
    "The identity provider knows you, but Berth does not.",
    "Ask an admin to add you, or to map one of your groups to a role.",
  ],
  BRT0035: [
    "The identity provider does not answer.",
    "Try again in a moment, or sign in with a token.",
  ],
} as const;

export type FailureCode = keyof typeof FAILURES;
export const FAILURE_CODES = Object.keys(FAILURES) as FailureCode[];

export function signInFailure(code: FailureCode): ApiError {
  const [detail, next] = FAILURES[code];
  return new ApiError({ status: 403, title: "Signing in did not work", code, detail, next });
}
