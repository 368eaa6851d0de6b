import { expect, test } from "vitest";
import { oneOf } from "@/lib/search";
import { FAILURE_CODES, signInFailure } from "./sign-in-failures";

test("an address says why a sign-in failed in our own words alone", () => {
  const code = oneOf({ code: "BRT0034", detail: "call 0900" }, "code", FAILURE_CODES);
  const failure = code && signInFailure(code);
  expect(failure?.code).toBe("BRT0034");
  expect(failure?.message).toBe("The identity provider knows you, but Berth does not.");
  expect(failure?.next).toContain("admin");
  for (const odd of ["Your account is locked", "BRT0001", "toString", ""])
    expect(oneOf({ code: odd }, "code", FAILURE_CODES), odd).toBeUndefined();
});
