const INVITED = "invited:";

/** What a user is called: the name that their sign-in gives, else their id; who was invited by a name, by that. */
export function nameOf({ id, name }: { id: string; name?: string }): string {
  return name || (id.startsWith(INVITED) ? id.slice(INVITED.length) : id);
}
