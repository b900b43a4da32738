import { type MeView } from "@threadkeep/client";
import { useStore } from "@threadkeep/react";
import { useCallback, useEffect, useState } from "react";

import { ConversationPage } from "../chat/conversation-page";
import { useFocusAfterClose } from "../hooks/use-focus-after-close";
import { LazyOverlay } from "../overlays/lazy-overlay";
import { Toasts } from "../overlays/toasts";
import { Sidebar } from "../sidebar/sidebar";
import { refreshAgents } from "../state/agents";
import { startFrontEnd } from "../state/front-end";
import { overlay } from "../state/overlay";
import { hideSidebar, sidebarHidden } from "../state/preferences";
import { go, route } from "../state/route";
import { Tooltip } from "../ui/tooltip";
import { useChunk } from "../ui/use-chunk";
import { useWords } from "../words";
import { LazyPage } from "./lazy-page";
import { useRefusalToast } from "./use-refusal-toast";

/** Whether the sidebar covers the page instead of being beside it. */
const narrow = matchMedia("(max-width: 760px)");

const loadAway = () => import("../away/away");
const loadLocalData = () => import("../users/local-data-offer");
const loadOffline = () => import("./offline-bar");
/** Where its code can't be loaded, the page works without it. */
const doWithout = () => true;

export function PageFrame({ me }: { me: MeView }) {
  const words = useWords();
  const at = useStore(route);
  const [menu, setMenu] = useState(false);
  const { id, installation } = me;
  const closeMenu = useCallback(() => setMenu(false), []);
  useEffect(() => {
    refreshAgents().catch(() => {}); // read again when they are needed
    const stop = startFrontEnd({ id, installation });
    window.addEventListener("keydown", shortcut);
    return () => {
      stop();
      window.removeEventListener("keydown", shortcut);
    };
  }, [id, installation]);
  useRefusalToast();
  const away = useChunk(loadAway, true, doWithout);
  const offline = useChunk(loadOffline, true, doWithout);
  const localData = useChunk(loadLocalData, me.reassignable !== undefined, doWithout);
  useEffect(() => setMenu(false), [at]);
  useEffect(() => {
    narrow.addEventListener("change", closeMenu);
    return () => narrow.removeEventListener("change", closeMenu);
  }, [closeMenu]);
  const isHidden = useStore(sidebarHidden);
  useFocusAfterClose(!isHidden, () => document.querySelector<HTMLElement>(".top-bar .narrow-only"));
  useFocusAfterClose(isHidden, () => document.querySelector<HTMLElement>(".brand .wide-only button"));
  const openMenu = useCallback(() => (narrow.matches ? setMenu(true) : hideSidebar(false)), []);
  return (
    <div className="page-frame" data-menu={menu || undefined} data-hidden={isHidden || undefined}>
      <a className="skip" href="#main" onClick={skip}>
        {words.skip}
      </a>
      <Sidebar me={me} open={menu} onClose={closeMenu} onCollapse={() => hideSidebar(true)} />
      <main id="main" tabIndex={-1} inert={menu}>
        {offline && <offline.OfflineBar me={me} />}
        {at.name === "new" || at.name === "conversation" ? (
          <ConversationPage
            at={at}
            offer={localData && me.reassignable && <localData.LocalDataOffer left={me.reassignable} canPutOff />}
            onMenu={openMenu}
          />
        ) : (
          <LazyPage at={at} me={me} onMenu={openMenu} />
        )}
      </main>
      <LazyOverlay />
      <Toasts />
      {away && <away.Away />}
      <Tooltip />
    </div>
  );
}

function skip(event: React.MouseEvent): void {
  event.preventDefault(); // the fragment is the page’s own address
  document.getElementById("main")?.focus();
}

function shortcut(event: KeyboardEvent): void {
  if (document.querySelector("dialog[open]")) return;
  const key = event.key.toLowerCase();
  const isCommand = (event.metaKey || event.ctrlKey) && !event.altKey;
  if (isCommand && event.shiftKey && key === "o") go({ name: "new", agentId: null });
  else if (isCommand && !event.shiftKey && key === "k") overlay.set("palette");
  else if (isCommand && !event.shiftKey && key === "b" && !narrow.matches) hideSidebar(!sidebarHidden.get());
  else if (key === "?" && !isCommand && !isTyping(event.target)) overlay.set("shortcuts");
  else return;
  event.preventDefault();
}

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));
}
