import { Paperclip } from "lucide-react";
import { useRef } from "react";

import { IconButton } from "../../ui/icon-button";
import { useWords } from "../../words";

/** Lets the user choose files, of any type: the server checks them. */
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
