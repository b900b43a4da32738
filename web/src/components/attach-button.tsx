import { Paperclip } from "lucide-react";
import { useRef } from "react";

import { useWords } from "../words";
import { IconButton } from "./icon-button";

/** Lets one choose files of one's own. Any: the server looks at what they are. */
export function AttachButton({ disabled, onFiles }: { disabled: boolean; onFiles: (files: readonly File[]) => void }) {
  const words = useWords();
  const input = useRef<HTMLInputElement>(null);
  return (
    <>
      <IconButton icon={Paperclip} label={words.attach} disabled={disabled} onClick={() => input.current?.click()} />
      <input
        ref={input}
        type="file"
        multiple
        hidden
        onChange={(event) => {
          onFiles([...(event.target.files ?? [])]);
          event.target.value = "";
        }}
      />
    </>
  );
}
