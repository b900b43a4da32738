import "../styles/away.css";

import { BellRing } from "lucide-react";

import { toast } from "../ui/toasts";
import { useAwayWords } from "../words/away";
import { choose, turnOn } from "./notifications";

/** Asks once, in our own words, before the browser does in its. */
export function NotificationOffer({ onClose }: { onClose: () => void }) {
  const awayWords = useAwayWords();
  const accept = async () => {
    onClose();
    toast((await turnOn()) ? awayWords.turnedOn : awayWords.blocked);
  };
  const refuse = () => {
    onClose();
    choose("off");
    toast(awayWords.later);
  };
  return (
    <aside className="notification-offer" aria-labelledby="notification-offer" role="region">
      <BellRing aria-hidden />
      <div>
        <p id="notification-offer" role="status">
          {awayWords.offer}
        </p>
        <div className="choices">
          <button type="button" className="primary" onClick={() => void accept()}>
            {awayWords.turnOn}
          </button>
          <button type="button" className="quiet" onClick={refuse}>
            {awayWords.noThanks}
          </button>
        </div>
      </div>
    </aside>
  );
}
