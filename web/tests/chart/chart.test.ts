import { expect, it } from "vitest";

import { describe, planOf } from "../../src/chart/option";

it("reads ECharts' options", () => {
  const plan = planOf({
    title: { text: "Sales", link: "https://evil.example" },
    xAxis: { type: "category", data: ["Q1", "Q2"] },
    series: [{ type: "bar", name: "2026", data: [3, 4], tooltip: { formatter: "<img src=x>" } }],
  });
  expect(plan).toEqual({
    title: "Sales",
    categories: ["Q1", "Q2"],
    series: [{ name: "2026", type: "bar", stack: false, data: [3, 4] }],
  });
});

it("reads the plain form", () => {
  const plan = planOf({ type: "pie", labels: ["a", "b"], datasets: [{ label: "x", data: [1, 2] }] });
  expect(plan?.series[0]?.data).toEqual([
    { name: "a", value: 1 },
    { name: "b", value: 2 },
  ]);
});

it.each([null, 7, "chart", [], {}, { series: "x" }, { series: [{ type: "map", data: [1] }] }, { series: [{ type: "bar", data: ["x", {}] }] }])(
  "gives up on what is no chart: %j",
  (data) => expect(planOf(data)).toBeNull(),
);

it("takes no more than can be drawn", () => {
  const plan = planOf({ type: "line", values: Array.from({ length: 100_000 }, (_, index) => index) });
  expect(plan?.series[0]?.data).toHaveLength(5000);
});

it("counts points that have no label", () => {
  expect(planOf({ series: [3, 5] })).toEqual({
    title: "",
    categories: ["1", "2"],
    series: [{ name: "", type: "bar", stack: false, data: [3, 5] }],
  });
});

it("reads rows with a kind", () => {
  const rows = [
    { month: "Jan", sold: 3, returned: 1 },
    { month: "Feb", sold: 4 },
  ];
  expect(planOf({ kind: "line", rows, x: "month" })).toEqual({
    title: "",
    categories: ["Jan", "Feb"],
    series: [
      { name: "sold", type: "line", stack: false, data: [3, 4] },
      { name: "returned", type: "line", stack: false, data: [1, null] },
    ],
  });
});

it("says what it shows to those who don't see it", () => {
  const days = Array.from({ length: 14 }, (_, index) => `${index + 1} Oct`);
  const bars = planOf({ type: "bar", title: "Turns", labels: days, series: [{ name: "Advisor", data: days.map((_, index) => index), stack: true }] });
  expect(describe(bars!, "Chart")).toMatch(/^Turns\. Advisor\. 1 Oct: 0; 2 Oct: 1; .*; 12 Oct: 11; … \(\+2\)\.$/);
  const pie = planOf({ type: "pie", labels: ["a", "b"], data: [1, 2] });
  expect(describe(pie!, "Chart")).toBe("Chart. a: 1; b: 2.");
});
