/** Headings of an answer: one below the page's, and none without the one above it, whatever levels a model writes. */

interface Node {
  type: string;
  depth?: number;
  children?: Node[];
}

/** The levels that the model gave the headings above a place, outermost first, such as "24". */
export type Above = string;

const PAGE_LEVEL = 1;
const FENCE = /^ {0,3}(`{3,}|~{3,})/;
const HEADING = /^ {0,3}(#{1,6})(?:[ \t]|$)/;
const UNDERLINE = /^ {0,3}(=+|-{2,})[ \t]*$/;
/** What an underline makes a heading of: text, and not the last line of something else. */
const UNDERLINED = /^ {0,3}[^\s#>|+*-]/;

/** The headings above what follows a heading of a level. */
function below(above: Above, level: number): Above {
  return [...above].filter((it) => Number(it) < level).join("") + level;
}

/** The headings above what follows a text. */
export function aboveNext(above: Above, text: string): Above {
  let fence: string | null = null;
  let before = "";
  for (const line of text.split("\n")) {
    const mark = FENCE.exec(line)?.[1];
    if (fence !== null) {
      if (mark?.startsWith(fence)) fence = null;
    } else if (mark) fence = mark;
    else {
      const marks = HEADING.exec(line)?.[1];
      const underline = UNDERLINED.test(before) && UNDERLINE.exec(line)?.[1];
      if (marks) above = below(above, marks.length);
      else if (underline) above = below(above, underline.startsWith("=") ? 1 : 2);
    }
    before = line;
  }
  return above;
}

/** Gives the headings of a text the levels that they have on the page. */
export const outline = (start: Above) => () => (tree: Node) => {
  let above = start;
  const visit = (node: Node) => {
    if (node.type === "heading" && node.depth) {
      above = below(above, node.depth);
      node.depth = Math.min(PAGE_LEVEL + above.length, 6);
    }
    node.children?.forEach(visit);
  };
  visit(tree);
};
