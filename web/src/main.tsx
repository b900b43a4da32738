import "./styles/index.css";

import { StrictMode } from "react";
import { createRoot } from "react-dom/client";

import { takeGivenToken } from "./api/api";
import { App } from "./pages/app";
import { applyPreferences } from "./state/preferences";
import { ErrorBoundary } from "./ui/error-boundary";
import { loadWords } from "./words";

takeGivenToken();
// In a tab that shows the page already, a link with a token changes only the fragment: reload the page to use it.
window.addEventListener("hashchange", () => takeGivenToken() && location.reload());
applyPreferences();
await loadWords().catch(() => {}); // then it is in English
createRoot(document.getElementById("root")!).render(
  <StrictMode>
    <ErrorBoundary>
      <App />
    </ErrorBoundary>
  </StrictMode>,
);
