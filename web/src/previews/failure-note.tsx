import { usePreviewWords } from "../words/previews";
import { type Kind } from "./sandbox/messages";
import { type Failure } from "./sandbox/sandbox";

/** Why there is nothing to see; what is broken stays so. */
export function FailureNote({ kind, failure, onRetry }: { kind: Kind; failure: Failure; onRetry: () => void }) {
  const previewWords = usePreviewWords();
  if (failure.what === "broken")
    return (
      <div className="failure" role="alert">
        <p>{previewWords.broken[kind]}</p>
        <pre tabIndex={0}>{failure.reason}</pre>
      </div>
    );
  const reasons = { silent: previewWords.silent, flooding: previewWords.flooding, missing: previewWords.missing };
  return (
    <div className="failure" role="alert">
      <p>{reasons[failure.what]}</p>
      <button type="button" onClick={onRetry}>
        {previewWords.again}
      </button>
    </div>
  );
}
