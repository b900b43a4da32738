import { useState } from "react";

import { type Refused } from "../state/session";
import { Broken } from "../ui/error-boundary";
import { useChunk } from "../ui/use-chunk";
import { useWords } from "../words";

const loadSignIn = () => import("./sign-in-chunk");

type Props = { refused: Refused } | { invitation: string };

/** Where users sign in, or accept an invitation; most are signed in already. */
export function LazySignIn(props: Props) {
  const words = useWords();
  const [hasFailed, setFailed] = useState(false);
  const chunk = useChunk(loadSignIn, true, () => {
    setFailed(true);
    return true;
  });
  if (hasFailed) return <Broken reason={words.partFailed} />;
  return chunk && ("invitation" in props ? <chunk.Invitation token={props.invitation} /> : <chunk.SignIn {...props} />);
}
