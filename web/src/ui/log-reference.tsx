import { useWords } from "../words";
import { CopyButton } from "./copy-button";

/** What the server's log calls a turn or a request, so that its operator finds what went wrong. */
export function LogReference({ id }: { id: string }) {
  const words = useWords();
  return (
    <small className="log-reference" title={words.referenceHint}>
      {words.reference} <code>{id}</code> <CopyButton text={id} label={words.copyReference} />
    </small>
  );
}
