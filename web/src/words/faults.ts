/** What is wrong with a field of a form; loaded with the first form. */

import { wordsHook } from "./language";
import { grouped } from "./format";

const en = {
  required: "This field is required.",
  tooShort: (least: number) => `Enter at least ${grouped(least)} characters.`,
  tooLong: (most: number) => `Enter at most ${grouped(most)} characters.`,
  email: "Enter a valid email address.",
  uri: "Enter a valid URL.",
  date: "Enter a valid date.",
  number: "Enter a number.",
  integer: "Enter a whole number.",
  least: (least: number) => `Must be at least ${least}.`,
  most: (most: number) => `Must be at most ${most}.`,
  fewest: (least: number) => `Choose at least ${least}.`,
  mostChosen: (most: number) => `Choose at most ${most}.`,
  json: "Enter valid JSON.",
  pattern: "Doesn’t match the required format.",
};

export type FaultWords = typeof en;

const zh: FaultWords = {
  required: "此项为必填。",
  tooShort: (least: number) => `至少输入 ${grouped(least)} 个字符。`,
  tooLong: (most: number) => `最多输入 ${grouped(most)} 个字符。`,
  email: "请输入正确的邮箱地址。",
  uri: "请输入正确的网址。",
  date: "请输入正确的日期。",
  number: "请输入数字。",
  integer: "请输入整数。",
  least: (least: number) => `不能小于 ${least}。`,
  most: (most: number) => `不能大于 ${most}。`,
  fewest: (least: number) => `至少选择 ${least} 项。`,
  mostChosen: (most: number) => `最多选择 ${most} 项。`,
  json: "请输入有效的 JSON。",
  pattern: "格式不正确。",
};

export const faultWords = { en, zh };
export const useFaultWords = wordsHook(faultWords);
