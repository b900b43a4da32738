import { type MeView } from "@threadkeep/client";
import { useState } from "react";

import { type Route } from "../state/route";
import { Broken } from "../ui/error-boundary";
import { useChunk } from "../ui/use-chunk";
import { useWords } from "../words";

const loadPages = () => import("./page-chunk");

interface Props {
  at: Exclude<Route, { name: "new" | "conversation" }>;
  me: MeView;
  onMenu: () => void;
}

/** Any page but the conversation; its code is loaded when the user goes there. */
export function LazyPage({ at, me, onMenu }: Props) {
  const words = useWords();
  const [hasFailed, setFailed] = useState(false);
  const pages = useChunk(loadPages, true, () => {
    setFailed(true);
    return true;
  });
  if (hasFailed) return <Broken reason={words.partFailed} />;
  if (!pages) return null;
  switch (at.name) {
    case "agents":
      return <pages.AgentsPage me={me} onMenu={onMenu} />;
    case "agent":
      return <pages.AgentPage key={at.id} id={at.id} tab={at.tab} me={me} onMenu={onMenu} />;
    case "archive":
      return <pages.ArchivePage onMenu={onMenu} />;
    case "briefings":
      return <pages.BriefingsPage onMenu={onMenu} />;
    case "conversations":
      return <pages.ConversationsPage onMenu={onMenu} />;
    case "deleted":
      return <pages.DeletedPage onMenu={onMenu} />;
    case "gateways":
      return <pages.GatewaysPage me={me} onMenu={onMenu} />;
    case "import":
      return <pages.ImportPage onMenu={onMenu} />;
    case "invitation":
      return null; // it stands alone (`app.tsx`)
    case "keys":
      return <pages.KeysPage me={me} onMenu={onMenu} />;
    case "memory":
      return <pages.MemoryPage onMenu={onMenu} />;
    case "missing":
      return <pages.MissingPage what="page" onMenu={onMenu} />;
    case "running":
      return <pages.RunningPage me={me} onMenu={onMenu} />;
    case "settings":
      return <pages.SettingsPage me={me} onMenu={onMenu} />;
    case "usage":
      return <pages.UsagePage me={me} onMenu={onMenu} />;
    case "users":
      return <pages.UsersPage me={me} onMenu={onMenu} />;
  }
}
