import { useStore } from "@threadkeep/react";
import { useEffect } from "react";

import { route } from "../state/route";
import { loadSession, session } from "../state/session";
import { LazySignIn } from "./lazy-sign-in";
import { PageFrame } from "./page-frame";
import { ServerUnreachable } from "./server-unreachable";

export function App() {
  const current = useStore(session);
  const at = useStore(route);
  useEffect(() => void loadSession(), []);
  if (at.name === "invitation") return <LazySignIn key={at.token} invitation={at.token} />;
  switch (current.state) {
    case "asking":
      return null;
    case "unreachable":
      return <ServerUnreachable />;
    case "out":
      return <LazySignIn refused={current.refused} />;
    case "in":
      return <PageFrame key={current.me.id} me={current.me} />;
  }
}
