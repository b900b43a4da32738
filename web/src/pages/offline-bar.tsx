import "../styles/offline.css";

import { type MeView } from "@threadkeep/client";
import { useStore } from "@threadkeep/react";
import { CloudOff } from "lucide-react";
import { useEffect, useState } from "react";

import { checkCopies } from "../offline/checking";
import { choice, followChoice, isWanted } from "../offline/choice";
import { idle } from "../offline/idle";
import { isForOfflineUse } from "../offline/shell";
import { frontEnd } from "../state/front-end";
import { setKept } from "../state/keeping";
import { askAboutUnknown } from "../state/unknown-server";
import { isAway, watchConnection } from "../state/watch-connection";
import { toast } from "../ui/toasts";
import { useOfflineWords } from "../words/offline";

/** Says that the server does not respond, and what is shown meanwhile. */
export function OfflineBar({ me }: { me: MeView }) {
  const offlineWords = useOfflineWords();
  const isOffline = useStore(isAway);
  const [wasOffline, setWasOffline] = useState(false);
  useStore(choice);
  useEffect(followChoice, []);
  useEffect(watchConnection, [me.id]);
  useEffect(() => {
    if (isOffline) return setWasOffline(true);
    // Once at the start, and after each time without a connection.
    const leaving = new AbortController();
    const check = async () => {
      await idle();
      if (!leaving.signal.aborted) await checkCopies(leaving.signal);
    };
    check().catch(() => {}); // the browser has no copies, or the server is away again
    return () => leaving.abort();
  }, [isOffline, me.id]);
  const isStarted = useStore(frontEnd.isStarted);
  useEffect(() => {
    if (isStarted) askAboutUnknown(offlineWords).catch(() => {}); // asked again at the next start
    // oxlint-disable-next-line react-hooks/exhaustive-deps -- once, whatever the language
  }, [isStarted]);
  const isKept = isWanted(me.id);
  const keep = () => void setKept(me, true).then(() => toast(offlineWords.nowKept)).catch(() => toast(offlineWords.unsupported));
  if (!isOffline && !wasOffline) return null;
  return (
    <div className={isOffline ? "offline" : "unseen"} role="status">
      {isOffline ? (
        <>
          <span>
            <CloudOff aria-hidden /> {navigator.onLine ? offlineWords.serverAway : offlineWords.offline} · {isKept ? offlineWords.showsCopies : offlineWords.showsNothing}
          </span>
          {!isKept && isForOfflineUse() && (
            <button type="button" className="link" onClick={keep}>
              {offlineWords.keep}
            </button>
          )}
        </>
      ) : (
        offlineWords.back
      )}
    </div>
  );
}
