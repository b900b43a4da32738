import { useCallback, useEffect, useState } from "react";

import { type MeView } from "../api/schema";
import { refreshAgents } from "../state/agents";
import { keepUp } from "../state/my-events";
import { overlay } from "../state/overlay";
import { hideSidebar, sidebarHidden } from "../state/preferences";
import { go, route } from "../state/route";
import { useStore } from "../state/store";
import { useWords } from "../words";
import { OtherPagePlace } from "./other-page-place";
import { OverlayPlace } from "./overlay-place";
import { Sidebar } from "./sidebar";
import { Talk } from "./talk";
import { Toasts } from "./toasts";
import { Tooltip } from "./tooltip";

export function Home({ me }: { me: MeView }) {
  const words = useWords();
  const at = useStore(route);
  const [menu, setMenu] = useState(false);
  const closeMenu = useCallback(() => setMenu(false), []);
  useEffect(() => {
    refreshAgents().catch(() => {}); // read again by whoever needs one
    const stop = keepUp(me.id);
    window.addEventListener("keydown", shortcut);
    return () => {
      stop();
      window.removeEventListener("keydown", shortcut);
    };
  }, [me.id]);
  useEffect(() => setMenu(false), [at]);
  const isHidden = useStore(sidebarHidden);
  const openMenu = useCallback(() => (isNarrow() ? setMenu(true) : hideSidebar(false)), []);
  return (
    <div className="home" data-menu={menu || undefined} data-hidden={isHidden || undefined}>
      <a className="skip" href="#main" onClick={skip}>
        {words.skip}
      </a>
      <Sidebar me={me} open={menu} onClose={closeMenu} onCollapse={() => hideSidebar(true)} />
      <main id="main" tabIndex={-1}>
        {at.name === "new" || at.name === "conversation" ? (
          <Talk at={at} onMenu={openMenu} />
        ) : (
          <OtherPagePlace at={at} me={me} onMenu={openMenu} />
        )}
      </main>
      <OverlayPlace />
      <Toasts />
      <Tooltip />
    </div>
  );
}

function skip(event: React.MouseEvent): void {
  event.preventDefault(); // the fragment is where one is
  document.getElementById("main")?.focus();
}

function shortcut(event: KeyboardEvent): void {
  if (document.querySelector("dialog[open]")) return;
  const key = event.key.toLowerCase();
  const isCommand = (event.metaKey || event.ctrlKey) && !event.altKey;
  if (isCommand && event.shiftKey && key === "o") go({ name: "new", agentId: null });
  else if (isCommand && !event.shiftKey && key === "k") overlay.set("palette");
  else if (isCommand && !event.shiftKey && key === "b" && !isNarrow()) hideSidebar(!sidebarHidden.get());
  else if (key === "?" && !isCommand && !isTyping(event.target)) overlay.set("shortcuts");
  else return;
  event.preventDefault();
}

function isNarrow(): boolean {
  return matchMedia("(max-width: 760px)").matches;
}

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));
}
