/** Cuts Markdown into pieces that can be drawn on their own, so that a stream only redraws the last. */

const FENCE = /^ {0,3}(`{3,}|~{3,})/;
const LIST_ITEM = /^ {0,3}([-*+]|\d{1,9}[.)])(\s|$)/;
const DEFINITION = /^ {0,3}\[[^\]]+\]:/m;

export function blocksOf(text: string): string[] {
  // A definition is used anywhere in the text, so it cannot be cut off.
  if (DEFINITION.test(text)) return [text];
  const blocks: string[] = [];
  let block: string[] = [];
  let fence: string | null = null;
  let formula = false;
  let list = false;
  let blank = false;
  for (const line of text.split("\n")) {
    const isBlank = line.trim() === "";
    const goesOn = fence !== null || formula || isBlank || (list && (LIST_ITEM.test(line) || /^\s/.test(line)));
    if (blank && !goesOn) {
      blocks.push(block.join("\n"));
      block = [];
      list = false;
    }
    const mark = FENCE.exec(line)?.[1];
    if (fence !== null) {
      if (mark?.startsWith(fence) && line.trim() === mark) fence = null;
    } else if (formula) {
      if (line.trim().endsWith("$$")) formula = false;
    } else if (mark) {
      fence = mark;
    } else if (line.trim().startsWith("$$") && !/\$\$.*\$\$/.test(line)) {
      formula = true;
    } else if (LIST_ITEM.test(line)) {
      list = true;
    }
    block.push(line);
    blank = isBlank && fence === null && !formula;
  }
  if (block.some((line) => line.trim() !== "")) blocks.push(block.join("\n"));
  return blocks;
}
