/** What runs an agent: configuration, or a program. */

/** The program that an agent in code is. */
export interface CodeEngine {
  kind: "code";
  key: string;
  version: number;
  /** Whether a program that runs it is connected. */
  status: "ready" | "absent";
  /** How many are. */
  workers: number;
}

/** An agent as far as it says what runs it; others' agents tell only the kind and the status. */
interface Engined {
  engine?: { kind: string } | null;
  /** What the code declares: fields, and settings as `settings.starters`. */
  readOnly?: readonly string[];
}

export function codeOf(agent: object): Partial<CodeEngine> | null {
  const { engine }: Engined = agent;
  return engine?.kind === "code" ? (engine as CodeEngine) : null;
}

/** Whether the agent's code declares a field or a setting, so that nobody changes it here. */
export function isDeclared(agent: object, name: string): boolean {
  const { readOnly = [] }: Engined = agent;
  return readOnly.includes(name) || readOnly.includes(`settings.${name}`);
}
