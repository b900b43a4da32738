import { type InstructionsView } from "@threadkeep/client";
import { type FormEvent } from "react";

import { SaveRow } from "../agents/save-row";
import { api } from "../api/api";
import { useLoaded } from "../api/use-loaded";
import { useForm } from "../state/use-form";
import { Field } from "../ui/field";
import { describeProblem, toastProblem } from "../ui/problem-bar";
import { toast } from "../ui/toasts";
import { useWords } from "../words";
import { useMemoryWords } from "../words/memory";

const PATH = "/api/me/instructions";
const readInstructions = (signal: AbortSignal) => api.get<InstructionsView>(PATH, {}, signal);

/** What the user tells every agent. */
export function Instructions() {
  const words = useWords();
  const memoryWords = useMemoryWords();
  const { loaded, set } = useLoaded(readInstructions);
  return (
    <section aria-labelledby="memory-instructions">
      <h2 id="memory-instructions">{memoryWords.instructions}</h2>
      {loaded.state === "loading" && <p className="hint">{words.loading}</p>}
      {loaded.state === "failed" && (
        <p className="hint wrong" role="alert">
          {describeProblem(words, loaded.problem)}
        </p>
      )}
      {loaded.state === "ready" && <InstructionsForm kept={loaded.value} onSaved={set} />}
    </section>
  );
}

function InstructionsForm({ kept, onSaved }: { kept: InstructionsView; onSaved: (saved: InstructionsView) => void }) {
  const words = useWords();
  const memoryWords = useMemoryWords();
  const form = useForm("instructions", kept);
  const save = async (event: FormEvent) => {
    event.preventDefault();
    try {
      await form.save(async () => {
        onSaved(await api.send<InstructionsView>("PUT", PATH, { text: form.values.text }));
        toast(memoryWords.instructionsSaved);
      });
    } catch (error) {
      toastProblem(words, error);
    }
  };
  return (
    <form onSubmit={(event) => void save(event)}>
      <Field label={memoryWords.toEveryAgent} hint={memoryWords.instructionsHint} fault={form.faultOf("text")}>
        <textarea
          dir="auto"
          rows={5}
          placeholder={memoryWords.instructionsExample}
          value={form.values.text}
          onChange={(event) => form.set("text", event.target.value)}
        />
      </Field>
      <SaveRow label={words.save} isChanged={form.isChanged} isSaving={form.isSaving} />
    </form>
  );
}
