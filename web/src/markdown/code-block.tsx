import { kindOfCode } from "../previews/kinds";
import { CopyButton } from "../ui/copy-button";
import { useChunk } from "../ui/use-chunk";
import { ColouredCode, type CodeProps } from "./coloured-code";

const loadPreviews = () => import("./previewed-code");

export function CodeBlock({ code, language, live }: CodeProps) {
  const kind = live ? null : kindOfCode(language, code);
  const previews = useChunk(loadPreviews, kind !== null);
  if (kind && previews) return <previews.PreviewedCode kind={kind} code={code} language={language} />;
  return (
    <figure className="code">
      <figcaption>
        <span>{language}</span>
        <CopyButton text={code} />
      </figcaption>
      <ColouredCode code={code} language={language} live={live} />
    </figure>
  );
}
