import { useLayoutEffect, useRef, useState } from "react";

import { usePreviewWords } from "../words/previews";
import { FailureNote } from "./failure-note";
import { type Kind } from "./sandbox/messages";
import { Sandbox, type Failure } from "./sandbox/sandbox";

/** As large as its place, or so many times larger. */
export function LargePreview({ kind, source, scale }: { kind: Kind; source: string; scale: number }) {
  const previewWords = usePreviewWords();
  const [failure, setFailure] = useState<Failure | null>(null);
  const [isShown, setShown] = useState(false);
  const place = useRef<HTMLDivElement>(null);
  const before = useRef(scale);
  // What was in the middle stays there.
  useLayoutEffect(() => {
    const by = scale / before.current;
    before.current = scale;
    const stage = place.current;
    if (!stage) return;
    stage.scrollLeft = (stage.scrollLeft + stage.clientWidth / 2) * by - stage.clientWidth / 2;
    stage.scrollTop = (stage.scrollTop + stage.clientHeight / 2) * by - stage.clientHeight / 2;
  }, [scale]);
  if (failure) return <FailureNote kind={kind} failure={failure} onRetry={() => setFailure(null)} />;
  return (
    <>
      {!isShown && (
        <p className="drawing" role="status">
          {previewWords.drawing}
        </p>
      )}
      <div ref={place} className="large-stage">
        <Sandbox
          kind={kind}
          source={source}
          label={previewWords.previewOf(previewWords.kinds[kind])}
          scale={scale}
          onHeight={() => setShown(true)}
          onFailure={setFailure}
        />
      </div>
    </>
  );
}
