/** A tool's chart data as a drawing option. Every value is checked. Pure. */

export interface Series {
  name: string;
  type: "bar" | "line" | "pie" | "scatter";
  stack: boolean;
  data: (number | null | [number, number] | { name: string; value: number })[];
}

export interface ChartPlan {
  title: string;
  categories: string[] | null;
  series: Series[];
}

/** How many values of a series are read out. */
const MOST_SAID = 12;

/** What a chart shows, for those who don't see it: `name` is what it is called without a title. */
export function describe({ title, categories, series }: ChartPlan, name: string): string {
  const said = (value: Series["data"][number], index: number) => {
    if (Array.isArray(value)) return `(${value.join(", ")})`;
    if (value !== null && typeof value === "object") return `${value.name}: ${value.value}`;
    return (categories?.[index] ? `${categories[index]}: ` : "") + (value ?? "–");
  };
  const lines = series.map((it) => {
    const rest = it.data.length - MOST_SAID;
    const values = it.data.slice(0, MOST_SAID).map(said).join("; ");
    return (it.name ? `${it.name}. ` : "") + values + (rest > 0 ? `; … (+${rest})` : "");
  });
  return `${[title || name, ...lines].join(". ")}.`;
}

const TYPES = ["bar", "line", "pie", "scatter"] as const;
const MOST_SERIES = 24;
const MOST_POINTS = 5000;
const MOST_LABEL = 80;

type Box = Record<string, unknown>;

const isBox = (value: unknown): value is Box => typeof value === "object" && value !== null && !Array.isArray(value);
const label = (value: unknown): string =>
  typeof value === "string" || typeof value === "number" ? String(value).slice(0, MOST_LABEL) : "";
const list = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);

/**
 * Takes ECharts' options, rows with a kind (`{kind, rows, x, y}`), and the plain form
 * `{type, title, labels, series|datasets: [{name, data}]}`.
 */
export function planOf(given: unknown): ChartPlan | null {
  if (!isBox(given)) return null;
  const data = Array.isArray(given["rows"]) ? ofRows(given, given["rows"].filter(isBox)) : given;
  const axis = isBox(data["xAxis"]) ? data["xAxis"] : isBox(list(data["xAxis"])[0]) ? (list(data["xAxis"])[0] as Box) : {};
  const labels = list(data["labels"] ?? data["categories"] ?? data["x"] ?? axis["data"]);
  const many = list(data["series"] ?? data["datasets"]);
  // Numbers alone are one series.
  const all = many.length && !many.every((it) => typeof it === "number") ? many : [{ data: data["data"] ?? data["values"] ?? data["y"] ?? many, name: data["name"] }];
  const series = all
    .slice(0, MOST_SERIES)
    .map((it) => seriesOf(it, data["type"]))
    .filter((it) => it !== null);
  if (!series.length) return null;
  const title = isBox(data["title"]) ? label(data["title"]["text"]) : label(data["title"]);
  const categories = labels.slice(0, MOST_POINTS).map(label);
  const isCounted = series.some((it) => it.data.some((value) => !Array.isArray(value)));
  if (!categories.length && isCounted)
    categories.push(...Array.from({ length: Math.max(...series.map((it) => it.data.length)) }, (_, index) => String(index + 1)));
  return { title, categories: categories.length ? categories : null, series: withNames(series, categories) };
}

function ofRows(given: Box, rows: Box[]): Box {
  const names = Object.keys(rows[0] ?? {});
  const x = label(given["x"]) || (names[0] ?? "");
  const y = typeof given["y"] === "string" ? [given["y"]] : list(given["y"]).map(label);
  const columns = y.length ? y : names.filter((it) => it !== x);
  return {
    type: given["kind"] ?? given["type"],
    title: given["title"],
    labels: rows.map((row) => row[x]),
    series: columns.map((name) => ({ name, data: rows.map((row) => row[name] ?? null) })),
  };
}

function seriesOf(given: unknown, common: unknown): Series | null {
  if (!isBox(given)) return null;
  const wanted = given["type"] ?? common ?? "bar";
  const type = wanted === "area" ? "line" : TYPES.find((it) => it === wanted);
  const data = list(given["data"] ?? given["values"])
    .slice(0, MOST_POINTS)
    .map(point)
    .filter((it) => it !== undefined);
  if (!type || !data.length || data.every((it) => it === null)) return null;
  return { name: label(given["name"] ?? given["label"]), type, stack: Boolean(given["stack"]), data };
}

function point(value: unknown): Series["data"][number] | undefined {
  if (value === null) return null;
  if (typeof value === "number") return Number.isFinite(value) ? value : null;
  if (Array.isArray(value) && typeof value[0] === "number" && typeof value[1] === "number") return [value[0], value[1]];
  if (isBox(value) && typeof value["value"] === "number") return { name: label(value["name"]), value: value["value"] };
  if (isBox(value) && typeof value["x"] === "number" && typeof value["y"] === "number") return [value["x"], value["y"]];
  return undefined;
}

/** The pieces of a pie are named by the labels. */
function withNames(series: Series[], categories: string[]): Series[] {
  return series.map((it) => {
    if (it.type !== "pie") return it;
    const data = it.data.map((value, index) =>
      typeof value === "number" ? { name: categories[index] ?? String(index + 1), value } : value,
    );
    return { ...it, data };
  });
}
