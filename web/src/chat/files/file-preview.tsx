import "../../styles/previews.css";

import { Download } from "lucide-react";
import { useCallback } from "react";

import { api } from "../../api/api";
import { download } from "../../api/download";
import { useLoaded } from "../../api/use-loaded";
import { Markdown } from "../../markdown/markdown";
import { CsvTable } from "../../previews/csv-table";
import { FailureNote } from "../../previews/failure-note";
import { type FileKind } from "../../previews/kinds";
import { LargePreview } from "../../previews/large-preview";
import { useFrameZoom } from "../../previews/use-frame-zoom";
import { IconButton } from "../../ui/icon-button";
import { LargerView } from "../../ui/larger-view";
import { toastProblem } from "../../ui/problem-bar";
import { useWords } from "../../words";
import { usePreviewWords } from "../../words/previews";

/** About 30 pages; more would hold up the browser. */
const MOST_CHARACTERS = 60_000;

interface Props {
  path: string;
  name: string;
  kind: FileKind;
  onClose: () => void;
}

/** A file as what it is, above the page. */
export function FilePreview({ path, name, kind, onClose }: Props) {
  const words = useWords();
  const previewWords = usePreviewWords();
  const { scale, buttons } = useFrameZoom();
  const { loaded, again } = useLoaded(
    useCallback(async (signal: AbortSignal) => (await api.request(path, { headers: { Accept: "*/*" }, signal })).text(), [path]),
  );
  const save = () => void download(path, {}, name).catch((error: unknown) => toastProblem(words, error));
  const actions = (
    <>
      {(kind === "svg" || kind === "mermaid") && buttons}
      <IconButton icon={Download} label={words.download} onClick={save} />
    </>
  );
  return (
    <LargerView title={name} actions={actions} onClose={onClose}>
      {loaded.state === "ready" && shown(loaded.value)}
      {loaded.state === "failed" && <FailureNote kind="html" failure={{ what: "missing" }} onRetry={() => void again()} />}
      {loaded.state === "loading" && <p className="drawing">{previewWords.drawing}</p>}
    </LargerView>
  );

  function shown(text: string) {
    if (kind === "csv") return <CsvTable text={text} />;
    if (kind === "markdown") return <MarkdownFile text={text} />;
    return <LargePreview kind={kind} source={text} scale={scale} />;
  }
}

function MarkdownFile({ text }: { text: string }) {
  const { locale } = useWords();
  const previewWords = usePreviewWords();
  if (text.length <= MOST_CHARACTERS) return <Markdown text={text} isPassage />;
  const end = text.lastIndexOf("\n", MOST_CHARACTERS);
  const shown = text.slice(0, end > 0 ? end : MOST_CHARACTERS);
  return (
    <>
      <p className="hint">
        {previewWords.inPart(previewWords.firstCharacters(shown.length.toLocaleString(locale), text.length.toLocaleString(locale)))}
      </p>
      <Markdown text={shown} isPassage />
    </>
  );
}
