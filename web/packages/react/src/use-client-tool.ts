import { type ClientTool } from "@threadkeep/client";
import { useEffect } from "react";

import { useFrontEnd } from "./provider.tsx";

/** Lets the model call a function of the page while the component is there: offered with every message that is sent. */
export function useClientTool(tool: ClientTool): void {
  const { tools } = useFrontEnd();
  if (!tools) throw new Error("Give the FrontEnd its `tools`: new ClientTools().");
  useEffect(() => tools.add(tool), [tools, tool]);
}
