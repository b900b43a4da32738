import { useEffect } from "react";

import { loadSession } from "../state/session";
import { useWords } from "../words";

const TRY_EVERY_MS = 3000;

/** Shown while the server is unreachable. */
export function ServerUnreachable() {
  const words = useWords();
  useEffect(() => {
    const timer = setInterval(() => void loadSession(), TRY_EVERY_MS);
    return () => clearInterval(timer);
  }, []);
  return (
    <main className="alone">
      <div role="status">
        <h1>{words.serverUnreachable}</h1>
      </div>
      <button type="button" onClick={() => void loadSession()}>
        {words.retry}
      </button>
    </main>
  );
}
