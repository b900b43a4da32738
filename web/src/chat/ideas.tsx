import { type ReactNode } from "react";

interface Props {
  ideas: readonly string[];
  onIdea: (idea: string) => void;
  /** What comes before them. */
  children?: ReactNode;
}

/** Messages to send with one click. */
export function Ideas({ ideas, onIdea, children }: Props) {
  return (
    <div className="ideas">
      {children}
      {ideas.map((idea) => (
        <button key={idea} type="button" onClick={() => onIdea(idea)}>
          {idea}
        </button>
      ))}
    </div>
  );
}
