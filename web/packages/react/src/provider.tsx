import { type FrontEnd } from "@threadkeep/client";
import { createContext, useContext, useEffect, type ReactNode } from "react";

const FrontEndContext = createContext<FrontEnd | null>(null);

/** Gives the hooks their server. Starts the front end when it appears and stops it when it disappears. */
export function ThreadkeepProvider({ frontEnd, children }: { frontEnd: FrontEnd; children?: ReactNode }) {
  useEffect(() => {
    void frontEnd.start();
    return () => frontEnd.stop();
  }, [frontEnd]);
  return <FrontEndContext.Provider value={frontEnd}>{children}</FrontEndContext.Provider>;
}

export function useFrontEnd(): FrontEnd {
  const frontEnd = useContext(FrontEndContext);
  if (!frontEnd) throw new Error("This hook needs a ThreadkeepProvider above it.");
  return frontEnd;
}
