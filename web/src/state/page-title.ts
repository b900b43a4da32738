/** What the browser's tab says: where the user is, and in how many conversations something has happened unseen. */

let place = "";
let unseen = 0;

export function setPlace(name: string): void {
  place = name;
  write();
}

export function setUnseen(count: number): void {
  unseen = count;
  write();
}

function write(): void {
  const title = place ? `${place} · Threadkeep` : "Threadkeep";
  document.title = unseen ? `(${unseen}) ${title}` : title;
}
