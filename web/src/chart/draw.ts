/** Draws a chart; loaded with the first one. */

import { BarChart, LineChart, PieChart, ScatterChart } from "echarts/charts";
import { GridComponent, LegendComponent, TitleComponent, TooltipComponent } from "echarts/components";
import { init, use as register, type EChartsType } from "echarts/core";
import { CanvasRenderer } from "echarts/renderers";

import { type ChartPlan } from "./option";
import { COLOURS } from "./palette";

const USED = [BarChart, CanvasRenderer, GridComponent, LegendComponent, LineChart, PieChart, ScatterChart, TitleComponent, TooltipComponent];

/** Draws into an element and follows its size; returns a function that removes the chart. */
export function draw(place: HTMLElement, plan: ChartPlan, theme: "light" | "dark"): () => void {
  register(USED);
  const chart: EChartsType = init(place);
  const style = getComputedStyle(document.documentElement);
  const ink = style.getPropertyValue("--ink-soft");
  const line = style.getPropertyValue("--line");
  const isPie = plan.series.every((it) => it.type === "pie");
  const isWhole = plan.series.every((it) => it.data.every((value) => value === null || Number.isInteger(value)));
  const axis = { axisLabel: { color: ink }, axisLine: { lineStyle: { color: line } }, splitLine: { lineStyle: { color: line } } };
  chart.setOption({
    animation: false,
    backgroundColor: "transparent",
    color: COLOURS[theme],
    textStyle: { fontFamily: style.getPropertyValue("--sans"), color: ink },
    title: plan.title ? { text: plan.title, left: 0, textStyle: { fontSize: 14, fontWeight: 500, color: ink } } : undefined,
    legend: plan.series.length > 1 || isPie ? { type: "scroll", bottom: 0, textStyle: { color: ink } } : undefined,
    // As text on the canvas: our policy forbids styles in markup.
    tooltip: { trigger: isPie ? "item" : "axis", renderMode: "richText", confine: true },
    grid: { left: 8, right: 16, top: plan.title ? 44 : 16, bottom: plan.series.length > 1 ? 40 : 8, containLabel: true },
    ...(isPie
      ? {}
      : {
          xAxis: plan.categories ? { type: "category", data: plan.categories, ...axis } : { type: "value", ...axis },
          yAxis: { type: "value", minInterval: isWhole ? 1 : undefined, ...axis },
        }),
    series: plan.series.map((it) => ({
      name: it.name,
      type: it.type,
      data: it.data,
      stack: it.stack ? "all" : undefined,
      ...(it.type === "pie" ? { radius: ["40%", "68%"], label: { color: ink } } : {}),
      ...(it.type === "bar" ? { barMaxWidth: 36 } : {}),
    })),
  });
  const sizing = new ResizeObserver(() => chart.resize());
  sizing.observe(place);
  return () => {
    sizing.disconnect();
    chart.dispose();
  };
}
