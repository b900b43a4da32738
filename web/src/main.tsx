import "./styles/index.css";

import { StrictMode, type ReactNode } from "react";
import { createRoot } from "react-dom/client";

import { isOfShare, restoreToken, takeGivenToken } from "./api/api";
import { adoptKept } from "./api/installation";
import { App } from "./pages/app";
import { followAll } from "./state/following";
import { applyPreferences } from "./state/preferences";
import { loadSession } from "./state/session";
import { bringTypeface, showKeptTypeface } from "./typeface/typeface";
import { ErrorBoundary } from "./ui/error-boundary";
import { loadWords } from "./words";

adoptKept();
restoreToken();
followAll();
takeGivenToken();
// In a tab that shows the page already, a link with a token changes only the fragment.
window.addEventListener("hashchange", () => takeGivenToken() && void loadSession());
applyPreferences();
void start();

/** Not at the module's own level: what is loaded here may need this module, which would wait for it. */
async function start(): Promise<void> {
  await Promise.all([loadWords().catch(() => {}), showKeptTypeface()]); // without its words, it is in English
  if (isOfShare) {
    const { SharedPage } = await import("./share/shared-page");
    show(<SharedPage />);
  } else {
    show(<App />);
    void import("./offline/shell").then(({ keepShell }) => keepShell()).catch(() => {}); // it works without
  }
  await bringTypeface();
}

function show(page: ReactNode): void {
  createRoot(document.getElementById("root")!).render(
    <StrictMode>
      <ErrorBoundary>{page}</ErrorBoundary>
    </StrictMode>,
  );
}
