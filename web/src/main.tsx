import "./styles/index.css";

import { StrictMode } from "react";
import { createRoot } from "react-dom/client";

import { takeGivenToken } from "./api/client";
import { App } from "./components/app";
import { applyPreferences } from "./state/preferences";

takeGivenToken();
applyPreferences();
createRoot(document.getElementById("root")!).render(
  <StrictMode>
    <App />
  </StrictMode>,
);
