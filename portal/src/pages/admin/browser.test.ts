import { expect, test } from "vitest";
import { browserOf } from "./browser";

test("a session names browser and system as people do", () => {
  const chrome =
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131.0.0.0 Safari/537.36";
  expect(browserOf(chrome)).toBe("Chrome 131 on Windows");
  expect(browserOf(`${chrome} Edg/131.0.0.0`)).toBe("Edge 131 on Windows");
  expect(browserOf("Mozilla/5.0 (X11; Linux x86_64; rv:132.0) Gecko/20100101 Firefox/132.0")).toBe(
    "Firefox 132 on Linux",
  );
  expect(
    browserOf(
      "Mozilla/5.0 (iPhone; CPU iPhone OS 18_1 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.1 Mobile/15E148 Safari/604.1",
    ),
  ).toBe("Safari 18 on iOS");
});

test("what no known browser says is shown as it is", () => {
  expect(browserOf("curl/8.5.0")).toBe("curl/8.5.0");
});
