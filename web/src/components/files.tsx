import { Download } from "lucide-react";

import { download } from "../api/download";
import { toast } from "../state/toasts";
import { problemOf } from "../thread/thread";
import { useWords } from "../words";
import { toldProblem } from "./problem-bar";

/** Files that tools gave in a turn. */
export function Files({ ids }: { ids: readonly string[] }) {
  const words = useWords();
  const get = async (id: string) => {
    try {
      await download(`/api/artifacts/${id}`, {}, id);
    } catch (error) {
      toast(toldProblem(words, problemOf(error)));
    }
  };
  return (
    <div className="files" role="group" aria-label={words.files}>
      {ids.map((id, index) => (
        <button key={id} type="button" onClick={() => void get(id)}>
          <Download aria-hidden /> {words.file(index + 1)}
        </button>
      ))}
    </div>
  );
}
