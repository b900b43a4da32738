import { type KeptFile } from "../../packages/client/src/turn/files";
import { Store } from "./store";

/** The image that is shown large, over the page. */
export const viewed = new Store<KeptFile | null>(null);
