import "../styles/previews.css";

import { Code, Eye, Maximize2 } from "lucide-react";
import { useRef, useState } from "react";

import { useNearlyVisible } from "../hooks/use-nearly-visible";
import { FailureNote } from "../previews/failure-note";
import { LargePreview } from "../previews/large-preview";
import { type Kind } from "../previews/sandbox/messages";
import { Sandbox, type Failure } from "../previews/sandbox/sandbox";
import { useFrameZoom } from "../previews/use-frame-zoom";
import { CopyButton } from "../ui/copy-button";
import { IconButton } from "../ui/icon-button";
import { LargerView } from "../ui/larger-view";
import { usePreviewWords } from "../words/previews";
import { ColouredCode } from "./coloured-code";

interface Props {
  kind: Kind;
  code: string;
  language: string;
}

/** The heights of what was shown, so that nothing moves when it is shown again. */
const heights = new Map<string, number>();
const MOST_HEIGHTS = 100;

function keepHeight(code: string, height: number): void {
  heights.delete(code);
  heights.set(code, height);
  if (heights.size > MOST_HEIGHTS) heights.delete(heights.keys().next().value!);
}

/** Code, and what it makes. Pages run only when the user wants to see them: they may do anything in their frame. */
export function PreviewedCode({ kind, code, language }: Props) {
  const previewWords = usePreviewWords();
  const place = useRef<HTMLElement>(null);
  const isNear = useNearlyVisible(place);
  const [isWanted, setWanted] = useState(kind !== "html");
  const [height, setHeight] = useState(heights.get(code));
  const [failure, setFailure] = useState<Failure | null>(null);
  const [blocked, setBlocked] = useState<readonly string[]>([]);
  const [isLarge, setLarge] = useState(false);
  const label = previewWords.kinds[kind];
  const isRunning = isWanted && !failure && isNear;
  // Until there is something to see, one reads the code.
  const isShown = isWanted && !failure && height !== undefined;
  const show = (wanted: boolean) => {
    setWanted(wanted);
    setFailure(null);
    setBlocked([]);
  };
  return (
    <figure ref={place} className="code previewed" data-code={code} aria-label={label} aria-busy={isRunning && !isShown}>
      <figcaption>
        <div className="switch-view" role="group" aria-label={previewWords.view}>
          <button type="button" aria-pressed={isWanted} onClick={() => show(true)}>
            <Eye aria-hidden /> {previewWords.preview}
          </button>
          <button type="button" aria-pressed={!isWanted} onClick={() => show(false)}>
            <Code aria-hidden /> {previewWords.code}
          </button>
        </div>
        <span className="language">{language}</span>
        <IconButton icon={Maximize2} label={previewWords.larger} onClick={() => setLarge(true)} />
        <CopyButton text={code} />
      </figcaption>
      {failure && <FailureNote kind={kind} failure={failure} onRetry={() => show(true)} />}
      {isRunning && (
        <div className="stage" data-kind={kind} data-shown={isShown}>
          <Sandbox
            kind={kind}
            source={code}
            label={previewWords.previewOf(label)}
            onHeight={(it) => {
              keepHeight(code, it);
              setHeight(it);
            }}
            onFailure={setFailure}
            onBlocked={(host) => setBlocked((all) => [...all, host])}
          />
        </div>
      )}
      {isShown && !isRunning && <div className="stage" data-kind={kind} data-shown style={{ height }} />}
      {!isShown && <ColouredCode code={code} language={language} live={false} />}
      {isShown && blocked.length > 0 && (
        <p className="blocked" role="status">
          {previewWords.blocked(blocked.join(", "))}
        </p>
      )}
      {isLarge && (
        <LargeCode kind={kind} code={code} onClose={() => setLarge(false)} />
      )}
    </figure>
  );
}

function LargeCode({ kind, code, onClose }: { kind: Kind; code: string; onClose: () => void }) {
  const previewWords = usePreviewWords();
  const { scale, buttons } = useFrameZoom();
  return (
    <LargerView title={previewWords.kinds[kind]} actions={kind === "html" ? undefined : buttons} onClose={onClose}>
      <LargePreview kind={kind} source={code} scale={scale} />
    </LargerView>
  );
}
