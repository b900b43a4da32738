/** The texts of selecting several conversations; they load with what lists them so. */

import { wordsHook } from "./language";
import { grouped } from "./format";

const some = (count: number) => (count === 1 ? "1 conversation" : `${grouped(count)} conversations`);

const en = {
  hint: "Select several to archive or delete them together. Hold Shift to select a range.",
  selection: "Selection",
  selectAll: "Select all",
  end: "Stop selecting",
  select: (title: string) => `Select “${title}”`,
  selected: (count: number) => `${grouped(count)} selected`,
  archived: (count: number) => `Archived ${some(count)}.`,
  unarchived: (count: number) => `Unarchived ${some(count)}.`,
  deleted: (count: number) => `Deleted ${some(count)}.`,
  restored: (count: number) => `Restored ${some(count)}.`,
};

const zh: typeof en = {
  hint: "选择多个对话，一起归档或删除。按住 Shift 可选择一段范围。",
  selection: "选择",
  selectAll: "全选",
  end: "结束选择",
  select: (title) => `选择“${title}”`,
  selected: (count) => `已选择 ${grouped(count)} 个`,
  archived: (count) => `已归档 ${grouped(count)} 个对话。`,
  unarchived: (count) => `已取消归档 ${grouped(count)} 个对话。`,
  deleted: (count) => `已删除 ${grouped(count)} 个对话。`,
  restored: (count) => `已恢复 ${grouped(count)} 个对话。`,
};

export const bulkWords = { en, zh };
export const useBulkWords = wordsHook(bulkWords);
