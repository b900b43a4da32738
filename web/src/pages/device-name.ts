/** What a browser says about itself, as people call it. */

import { type SessionWords } from "../words/sessions";

/** In this order: most browsers name those that they descend from, too. */
const BROWSERS: readonly [RegExp, string][] = [
  [/\bEdg(e|A|iOS)?\//, "Edge"],
  [/\b(OPR|Opera)\//, "Opera"],
  [/\bSamsungBrowser\//, "Samsung Internet"],
  [/\bVivaldi\//, "Vivaldi"],
  [/\b(Firefox|FxiOS)\//, "Firefox"],
  [/\b(Chrome|CriOS|Chromium|HeadlessChrome)\//, "Chrome"],
  [/\bSafari\//, "Safari"],
];

const SYSTEMS: readonly [RegExp, string][] = [
  [/\biPhone\b/, "iPhone"],
  [/\biPad\b/, "iPad"],
  [/\bAndroid\b/, "Android"],
  [/\bCrOS\b/, "ChromeOS"],
  [/\bWindows\b/, "Windows"],
  [/\bMac OS X\b|\bMacintosh\b/, "macOS"],
  [/\bLinux\b|\bX11\b/, "Linux"],
];

/** Such as "Firefox on Linux"; a name that no rule knows is shown as it is, if it is short enough to be one. */
export function deviceName(userAgent: string, sessionWords: SessionWords): string {
  const browser = nameIn(BROWSERS, userAgent);
  const system = nameIn(SYSTEMS, userAgent);
  if (!browser && !system) return userAgent && userAgent !== "unknown" && userAgent.length <= 40 ? userAgent : sessionWords.unknownBrowser;
  return sessionWords.on(browser ?? sessionWords.unknownBrowser, system ?? sessionWords.unknownSystem);
}

function nameIn(names: readonly [RegExp, string][], userAgent: string): string | undefined {
  return names.find(([known]) => known.test(userAgent))?.[1];
}
