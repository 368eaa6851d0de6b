import { expect, test } from "vitest";
import { copyCommand, isTooLarge } from "./large-file";

test("a file that a browser cannot hold goes by a command that a shell takes as it is", () => {
  expect(isTooLarge(1024 ** 3)).toBe(false);
  expect(isTooLarge(80 * 1024 ** 3)).toBe(true);
  expect(copyCommand("17", "checkpoints/last.pt")).toBe("berth cp 17:checkpoints/last.pt .");
  expect(copyCommand("17_3", "my file.pt")).toBe("berth cp '17_3:my file.pt' .");
});
