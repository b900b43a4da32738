import { useStore } from "@threadkeep/react";
import { useState } from "react";

import { SwitchRow } from "../ui/switch-row";
import { useAwayWords } from "../words/away";
import { choice, choose, isBlocked, isSupported, turnOn } from "./notifications";

/** Turns notifications on and off; says so where the browser has the last word. */
export function NotificationSetting() {
  const awayWords = useAwayWords();
  const isOn = useStore(choice) === "on";
  const [isRefused, setRefused] = useState(() => isSupported() && isBlocked());
  if (!isSupported()) return <p className="hint">{awayWords.unsupported}</p>;
  const change = async () => {
    if (isOn) choose("off");
    else setRefused(!(await turnOn()));
  };
  return (
    <>
      <SwitchRow title={awayWords.setting} hint={awayWords.settingHint} isOn={isOn && !isRefused} onChange={() => void change()} />
      {isRefused && (
        <p className="hint" role="status">
          {awayWords.blocked}
        </p>
      )}
    </>
  );
}
