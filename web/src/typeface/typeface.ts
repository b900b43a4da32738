/** The page's typeface, Inter. It never delays the first paint and never moves what is being read. */

import latin from "typeface:latin.woff2";
import latinExtended from "typeface:latin-ext.woff2";

import { PIECES, WEIGHTS } from "./pieces";

const KEPT = "threadkeep.typeface";
/** How long the first paint waits for a typeface that the browser has kept. */
const MOST_WAIT_MS = 100;
/** Where a text is read: other letters would break its lines elsewhere. */
const READ = ".messages .entry";
/** A reader of a share opens no other page: the typeface loads before they scroll or select, or not at all. */
const SHARED = ".shared-conversation";

const weight = `${WEIGHTS.min} ${WEIGHTS.max}`;
const faceOf = (url: string, unicodeRange: string) => new FontFace("Inter", `url(${url})`, { weight, unicodeRange });

let loading: Promise<FontFace[]> | undefined;

/** All of it at once: a piece that came with its first letter would come while that is read. */
function load(): Promise<FontFace[]> {
  if (!loading) {
    const faces = [faceOf(latin, PIECES.latin), faceOf(latinExtended, PIECES["latin-ext"])];
    loading = Promise.all(faces.map((face) => face.load()));
    loading.then(() => localStorage.setItem(KEPT, latin)).catch(() => {});
  }
  return loading;
}

function show(faces: FontFace[]): void {
  for (const face of faces) document.fonts.add(face);
}

/** Shows the typeface from the first paint on if the browser has kept it since the visit before. */
export async function showKeptTypeface(): Promise<void> {
  if (localStorage.getItem(KEPT) !== latin) return;
  const late = new Promise<null>((resolve) => setTimeout(resolve, MOST_WAIT_MS, null));
  const faces = await Promise.race([load(), late]).catch(() => null);
  if (faces) show(faces);
}

/** Loads the typeface when the page itself has loaded, and shows it as soon as that moves nothing. */
export async function bringTypeface(): Promise<void> {
  if (document.readyState !== "complete") await new Promise((resolve) => window.addEventListener("load", resolve, { once: true }));
  const faces = await load().catch(() => null); // then it stays the system's
  if (!faces) return;
  if (document.querySelector(READ) || isReadOn(document.querySelector(SHARED))) await nextChange();
  show(faces);
}

/** Whether somebody has begun to scroll or to select: until then, letters that are as wide move next to nothing. */
function isReadOn(shared: Element | null): boolean {
  const scroller = shared?.closest(".scroller") ?? document.scrollingElement;
  return shared !== null && ((scroller?.scrollTop ?? 0) > 0 || getSelection()?.isCollapsed === false);
}

/** Until the user goes elsewhere, on the page or to another tab. */
const nextChange = () =>
  new Promise<void>((resolve) => {
    window.addEventListener("hashchange", () => resolve(), { once: true });
    document.addEventListener("visibilitychange", () => resolve(), { once: true }); // to hidden: it was shown
  });
