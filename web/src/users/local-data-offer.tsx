import { type MovableView } from "@threadkeep/client";
import { useStore } from "@threadkeep/react";
import { FolderInput } from "lucide-react";
import { useState } from "react";

import { isPutOff, putOff, takeLocalData } from "../state/local-data";
import { Callout } from "../ui/callout";
import { toastProblem } from "../ui/problem-bar";
import { toast } from "../ui/toasts";
import { useWords } from "../words";
import { useLocalDataWords } from "../words/local-data";

interface Props {
  left: MovableView;
  /** Whether the user can put it off; where it is always offered, there is no need to. */
  canPutOff?: boolean;
}

/** Offers an admin what everybody had before people signed in. */
export function LocalDataOffer({ left, canPutOff = false }: Props) {
  const words = useWords();
  const localDataWords = useLocalDataWords();
  const isOff = useStore(isPutOff);
  const [isMoving, setMoving] = useState(false);
  if (canPutOff && isOff) return null;
  const take = async () => {
    setMoving(true);
    try {
      toast(localDataWords.moved(await takeLocalData()));
    } catch (error) {
      toastProblem(words, error);
      setMoving(false);
    }
  };
  return (
    <Callout icon={FolderInput} title={localDataWords.title}>
      <p>{localDataWords.text(left)}</p>
      <div className="choices">
        <button type="button" className="primary" disabled={isMoving} onClick={() => void take()}>
          {localDataWords.move}
        </button>
        {canPutOff && (
          <button type="button" disabled={isMoving} onClick={putOff}>
            {localDataWords.notNow}
          </button>
        )}
      </div>
    </Callout>
  );
}
