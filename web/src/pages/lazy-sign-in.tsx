import { useState } from "react";

import { Broken } from "../ui/error-boundary";
import { useChunk } from "../ui/use-chunk";
import { useWords } from "../words";

const loadSignIn = () => import("./sign-in");

/** Where users sign in; most are signed in already. */
export function LazySignIn({ refused }: { refused: boolean }) {
  const words = useWords();
  const [hasFailed, setFailed] = useState(false);
  const chunk = useChunk(loadSignIn, true, () => {
    setFailed(true);
    return true;
  });
  if (hasFailed) return <Broken reason={words.partFailed} />;
  return chunk && <chunk.SignIn refused={refused} />;
}
