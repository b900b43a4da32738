/** The user's copies on this device: the conversations that were opened last, and what the page needs to show them. */

import { type MeView } from "@threadkeep/client";

import { installation } from "../api/installation";
import { forgetChoice, isWanted, noteInstalled } from "./choice";
import { excess, LARGEST, type Copy, type Table } from "./copy-limits";
import { CopyTable } from "./copy-table";
import { COPIES, DELETING } from "./storage";

/** The row that says whose copies these are; without it, nothing is kept. */
const OWNER = "";
/** Views of another API may lack what this page needs. */
declare const API_SHAPE: string;

interface Owner {
  me: MeView;
  shape: string;
}

export class Device {
  constructor(private readonly table: Table) {}

  /** The server says who this is. Deletes what is not theirs, and everything if they want nothing kept. */
  async own(me: MeView): Promise<void> {
    if (isDeleting()) await this.clear();
    noteInstalled(me.id);
    const wanted = isWanted(me.id);
    await this.table.change(async (rows) => {
      const owner = ownerIn(await rows.get(OWNER));
      if (!wanted || !isOf(owner, me) || owner?.shape !== API_SHAPE) await rows.clear();
      if (wanted) await rows.put({ path: OWNER, json: JSON.stringify({ me, shape: API_SHAPE }), at: Date.now() });
    });
  }

  async owner(): Promise<MeView | undefined> {
    if (isDeleting()) await this.clear();
    const owner = ownerIn(await this.table.change((rows) => rows.get(OWNER)));
    const isReadable = owner?.shape === API_SHAPE && isWanted(owner.me.id) && isOfThisServer(owner.me);
    return isReadable ? owner.me : undefined;
  }

  /** Keeps a copy, unless its user has signed out since, here or in another tab. */
  async keep(me: MeView, path: string, view: unknown, at = Date.now()): Promise<void> {
    const json = JSON.stringify(view);
    if (json.length > LARGEST) return this.drop(path);
    const put = (share: number) =>
      this.table.change(async (rows) => {
        if (!isOf(ownerIn(await rows.get(OWNER)), me)) return;
        await rows.put({ path, json, at });
        for (const it of excess(await rows.sizes(), share)) await rows.delete(it);
      });
    // A full disk: half of it is better than nothing.
    await put(1).catch(async () => {
      await this.table.change(async (rows) => {
        for (const it of excess(await rows.sizes(), 0.5)) await rows.delete(it);
      });
      await put(0.5);
    });
  }

  async read<T>(me: MeView, path: string): Promise<T | undefined> {
    return this.table.change(async (rows) => {
      if (!isOf(ownerIn(await rows.get(OWNER)), me)) return undefined;
      const copy = await rows.get(path);
      return copy && (JSON.parse(copy.json) as T);
    });
  }

  async drop(path: string): Promise<void> {
    await this.table.change((rows) => rows.delete(path));
  }

  /** The paths of all copies, and when each was kept. */
  async all(): Promise<readonly { path: string; at: number; size: number }[]> {
    return (await this.table.change((rows) => rows.sizes())).filter(({ path }) => path !== OWNER);
  }

  async clear(): Promise<void> {
    await this.table.change((rows) => rows.clear());
    forgetChoice();
  }
}

function isDeleting(): boolean {
  return localStorage.getItem(COPIES) === DELETING;
}

function ownerIn(copy: Copy | undefined): Owner | undefined {
  return copy && (JSON.parse(copy.json) as Owner);
}

/** Whether the copies are this user's, from this server. */
function isOf(owner: Owner | undefined, { id, installation }: MeView): boolean {
  return owner?.me.id === id && owner.me.installation === installation;
}

function isOfThisServer(me: MeView): boolean {
  return !installation || me.installation === installation;
}

export const device = new Device(new CopyTable(COPIES));
