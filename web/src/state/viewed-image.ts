import { Store, type KeptFile } from "@threadkeep/client";

/** The image that is shown large, over the page. */
export const viewed = new Store<KeptFile | null>(null);
