import { expect, it } from "vitest";

import { deviceName } from "../../src/pages/device-name";
import { sessionWords } from "../../src/words/sessions";

it.each([
  ["Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0", "Firefox on Linux"],
  ["Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36 Edg/142.0.0.0", "Edge on Windows"],
  ["Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/26.0 Safari/605.1.15", "Safari on macOS"],
  ["Mozilla/5.0 (iPhone; CPU iPhone OS 18_6 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) CriOS/142.0 Mobile/15E148 Safari/604.1", "Chrome on iPhone"],
  ["Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) SamsungBrowser/29.0 Chrome/136.0.0.0 Mobile Safari/537.36", "Samsung Internet on Android"],
  ["Mozilla/5.0 (PlayStation) Firefox/1.0", "Firefox on an unknown system"],
  ["python-httpx2/1.0", "python-httpx2/1.0"],
  ["unknown", "Unknown browser"],
  ["", "Unknown browser"],
  ["x".repeat(200), "Unknown browser"],
])("calls %s %s", (userAgent, name) => {
  expect(deviceName(userAgent, sessionWords.en)).toBe(name);
});
