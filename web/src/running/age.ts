/** How long ago something was. */

import { relativeTime, seconds } from "../words/format";

const HOUR_MS = 3_600_000;

/** A span of time as people say it; whoever shows it says what it is the span of. */
export function age(ms: number, locale: string): string {
  const rest = Math.max(0, ms);
  if (rest < HOUR_MS) return seconds(rest, locale);
  const parts = new Intl.NumberFormat(locale, { style: "unit", unitDisplay: "long", unit: rest < 24 * HOUR_MS ? "hour" : "day" });
  return parts.format(Math.floor(rest / (rest < 24 * HOUR_MS ? HOUR_MS : 24 * HOUR_MS)));
}

/** When something began: a moment ago in seconds, longer ago as elsewhere. */
export function began(iso: string, locale: string, now: number, ago: (time: string) => string): string {
  return relativeTime(iso, locale, now) || ago(seconds(Math.max(0, now - Date.parse(iso)), locale));
}
