/** The texts of previews and tables; they load with the first one. */

import { wordsHook } from "./language";
import { grouped } from "./format";

const en = {
  view: "View",
  preview: "Preview",
  code: "Code",
  kinds: { html: "Web page", mermaid: "Diagram", svg: "Image" },
  previewOf: (name: string) => `Preview: ${name}`,
  drawing: "Drawing…",
  larger: "Larger view",
  broken: { html: "This page can’t be shown:", mermaid: "This diagram can’t be drawn:", svg: "This image can’t be shown:" },
  silent: "The preview stopped responding, so it was closed.",
  flooding: "The preview was closed because it kept the page too busy.",
  missing: "The preview couldn’t be loaded. Check your connection.",
  again: "Try again",
  blocked: (hosts: string) => `Previews have no network. Blocked: ${hosts}`,
  rows: (count: number) => (count === 1 ? "1 row" : `${grouped(count)} rows`),
  firstRows: (shown: number, all: number) => `First ${grouped(shown)} of ${grouped(all)} rows`,
  firstColumns: (shown: number, all: number) => `first ${grouped(shown)} of ${grouped(all)} columns`,
  firstCharacters: (shown: string, all: string) => `First ${shown} of ${all} characters`,
  inPart: (what: string) => `${what}. Download the file for the rest.`,
  table: "Table",
  downloadCsv: "Download as CSV",
  tableName: "table",
};

const zh: typeof en = {
  view: "查看方式",
  preview: "预览",
  code: "代码",
  kinds: { html: "网页", mermaid: "示意图", svg: "图片" },
  previewOf: (name) => `预览：${name}`,
  drawing: "正在绘制…",
  larger: "放大查看",
  broken: { html: "无法显示该网页：", mermaid: "无法绘制该示意图：", svg: "无法显示该图片：" },
  silent: "预览没有响应，已关闭。",
  flooding: "预览占用了过多资源，已关闭。",
  missing: "预览加载失败，请检查网络连接。",
  again: "重试",
  blocked: (hosts) => `预览不能访问网络，已阻止：${hosts}`,
  rows: (count) => `${grouped(count)} 行`,
  firstRows: (shown, all) => `前 ${grouped(shown)} 行，共 ${grouped(all)} 行`,
  firstColumns: (shown, all) => `前 ${grouped(shown)} 列，共 ${grouped(all)} 列`,
  firstCharacters: (shown, all) => `前 ${shown} 个字符，共 ${all} 个`,
  inPart: (what) => `${what}。完整内容请下载文件。`,
  table: "表格",
  downloadCsv: "下载 CSV",
  tableName: "表格",
};

export const previewWords = { en, zh };
export const usePreviewWords = wordsHook(previewWords);
