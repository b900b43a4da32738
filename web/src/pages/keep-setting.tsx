import { type MeView } from "@threadkeep/client";
import { useStore } from "@threadkeep/react";
import { useCallback, useState } from "react";

import { useLoaded } from "../api/use-loaded";
import { choice, isWanted } from "../offline/choice";
import { conversationIn, MOST_CONVERSATIONS } from "../offline/copy-limits";
import { device } from "../offline/device";
import { isForOfflineUse } from "../offline/shell";
import { setKept } from "../state/keeping";
import { SwitchRow } from "../ui/switch-row";
import { bytes } from "../words/format";
import { useOfflineWords } from "../words/offline";

/** Keeps conversations on this device, or deletes them at once. */
export function KeepSetting({ me }: { me: MeView }) {
  const offlineWords = useOfflineWords();
  useStore(choice);
  const isOn = isWanted(me.id);
  const [said, setSaid] = useState("");
  const read = useCallback(() => device.all(), []);
  const { loaded, again } = useLoaded(read);
  if (!isForOfflineUse()) return <p className="hint">{offlineWords.turnedOff}</p>;
  if (loaded.state === "failed") return <p className="hint">{offlineWords.unsupported}</p>;
  const change = async () => {
    await setKept(me, !isOn).catch(() => {});
    setSaid(isOn ? offlineWords.nowDeleted : "");
    await again();
  };
  const kept = loaded.state === "ready" ? loaded.value.filter(({ path }) => conversationIn(path)) : [];
  const size = kept.reduce((sum, it) => sum + it.size, 0);
  return (
    <>
      <SwitchRow title={offlineWords.keep} hint={offlineWords.keepHint(MOST_CONVERSATIONS)} isOn={isOn} onChange={() => void change()} />
      <p className="hint" role="status">
        {isOn && kept.length > 0 ? offlineWords.kept(kept.length, bytes(size)) : said}
      </p>
    </>
  );
}
