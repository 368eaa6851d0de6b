import { expect, it } from "vitest";
import { parseSearch, stringifySearch } from "@/lib/search";
import { type RunsSearch, runsSearch } from "./search";

const again = (search: RunsSearch) => runsSearch(parseSearch(stringifySearch({ ...search })));

it("the address keeps the filter, the columns, the selection and every chart", () => {
  const search: RunsSearch = {
    view: "parallel",
    q: "metrics.`val loss` < 0.5 AND params.lr = '0.1' AND tags.note LIKE '%a,b&c=d%'",
    sort: "-metrics.val loss",
    deleted: true,
    cols: ["metrics.val loss", "params.opt/lr", "tags.a:b"],
    runs: Array.from({ length: 100 }, (_, i) => i.toString(16).padStart(32, "0")),
    axes: ["params.lr", "metrics.loss"],
    brush: ["metrics.loss~0.1~0.3", "params.lr~1e-7~2"],
    colour: "metrics.loss",
    metrics: ["loss", "acc"],
    x: "cost",
    log: true,
    smooth: 0.6,
    sx: "metrics.berth.cost",
    sy: "metrics.acc",
    same: true,
  };
  expect(again(search)).toEqual(search);
});

it("drops what makes no sense", () => {
  const { view, x, smooth } = runsSearch({ view: "pie", x: "colour", smooth: "much" });
  expect([view, x, smooth]).toEqual([undefined, undefined, undefined]);
});
