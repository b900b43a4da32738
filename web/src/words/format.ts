/** Numbers and times as people read them. */

/** A count with separators; both languages group digits alike. */
export function grouped(count: number): string {
  return count.toLocaleString("en");
}

export function duration(ms: number): string {
  if (ms < 1000) return `${Math.max(0, Math.round(ms))} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`;
  return `${Math.floor(ms / 60_000)} min ${Math.round((ms % 60_000) / 1000)} s`;
}

/** A duration in whole seconds, as people say it. */
export function seconds(ms: number, locale: string): string {
  const [minute, second] = locale.startsWith("zh") ? ["分", "秒"] : ["min", "s"];
  const all = Math.round(ms / 1000);
  const rest = `${all % 60} ${second}`;
  return all < 60 ? rest : `${Math.floor(all / 60)} ${minute} ${rest}`;
}

/** A short duration with a decimal, a longer one in whole seconds. */
export function shortSeconds(ms: number, locale: string): string {
  if (ms >= 9950) return seconds(ms, locale);
  return `${Math.max(0.1, ms / 1000).toFixed(1)} ${locale.startsWith("zh") ? "秒" : "s"}`;
}

export function bytes(count: number): string {
  if (count < 1024) return `${count} B`;
  if (count < 1024 * 1024) return `${(count / 1024).toFixed(1)} KB`;
  return `${(count / 1024 / 1024).toFixed(1)} MB`;
}

export function dateTime(iso: string, locale: string): string {
  return new Intl.DateTimeFormat(locale, { dateStyle: "medium", timeStyle: "short" }).format(new Date(iso));
}

/** An amount of money; small ones with the digits that matter. */
export function money({ amount, currency }: { amount: string; currency: string }, locale: string): string {
  const value = Number(amount);
  const isSmall = value !== 0 && Math.abs(value) < 0.1;
  const digits = isSmall ? { maximumSignificantDigits: 2 } : { minimumFractionDigits: 2, maximumFractionDigits: 2 };
  return new Intl.NumberFormat(locale, { style: "currency", currency, ...digits }).format(value);
}

/** A day such as `2026-03-10`, without its year. */
export function shortDay(date: string, locale: string): string {
  return new Intl.DateTimeFormat(locale, { month: "short", day: "numeric", timeZone: "UTC" }).format(new Date(date));
}

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/** How long ago it was, within a week; then its day. Empty if it was just now. */
export function relativeTime(iso: string, locale: string, now: number): string {
  const ago = now - Date.parse(iso);
  if (ago < MINUTE_MS) return "";
  if (ago > 7 * DAY_MS) return new Intl.DateTimeFormat(locale, { dateStyle: "medium" }).format(new Date(iso));
  if (ago < HOUR_MS) return relative(-Math.floor(ago / MINUTE_MS), "minute", locale);
  return ago < DAY_MS ? relative(-Math.floor(ago / HOUR_MS), "hour", locale) : relative(-Math.floor(ago / DAY_MS), "day", locale);
}

/** With a space between numbers and Chinese characters, as the page writes them everywhere. */
function relative(count: number, unit: "minute" | "hour" | "day", locale: string): string {
  return new Intl.RelativeTimeFormat(locale, { numeric: "auto" }).format(count, unit).replace(/(\d)(?=[\u4e00-\u9fff])/, "$1 ");
}

/** How many whole days there are between two moments. */
export function daysBetween(from: string, to: string): number {
  return Math.round((Date.parse(to) - Date.parse(from)) / DAY_MS);
}

/** In how many days it will be. */
export function untilDay(iso: string, locale: string, now: number): string {
  const days = Math.max(0, Math.ceil((Date.parse(iso) - now) / DAY_MS));
  return relative(days, "day", locale);
}

export function capitalized(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

export type DayGroup = "today" | "yesterday" | "lastWeek" | "lastMonth" | "older";

/** The group of a conversation in the list, by the reader's own calendar. */
export function dayGroup(iso: string, now: Date = new Date()): DayGroup {
  const midnight = new Date(now.getFullYear(), now.getMonth(), now.getDate()).getTime();
  const days = Math.ceil((midnight - Date.parse(iso)) / 86_400_000);
  if (days <= 0) return "today";
  if (days === 1) return "yesterday";
  if (days <= 7) return "lastWeek";
  return days <= 30 ? "lastMonth" : "older";
}
