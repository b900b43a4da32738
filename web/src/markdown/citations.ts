/** The marks `[1]` that name a source. */

interface Node {
  type: string;
  value?: string;
  url?: string;
  children?: Node[];
}

const MARK = /\[(\d{1,3})\]/g;
export const CITATION = "#source-";

/** What is written in code isn't a mark. */
const CODE = /^ {0,3}(`{3,}|~{3,})[^]*?(?:^ {0,3}\1|$(?![^]))|(`+)[^]*?\2/gm;

/** The numbers of the sources that a text cites. */
export function citedIn(text: string): ReadonlySet<number> {
  return new Set([...text.replace(CODE, "").matchAll(MARK)].map(([, number]) => Number(number)));
}

/** Makes links of the marks. */
export function citationMarks(count: number) {
  return () => (tree: Node) => visit(tree, count);
}

function visit(node: Node, count: number): void {
  if (!node.children || node.type === "link") return;
  node.children = node.children.flatMap((child) => {
    if (child.type === "text") return marked(child.value ?? "", count);
    visit(child, count);
    return [child];
  });
}

function marked(text: string, count: number): Node[] {
  const nodes: Node[] = [];
  let at = 0;
  for (const mark of text.matchAll(MARK)) {
    const index = Number(mark[1]);
    if (index < 1 || index > count) continue;
    if (mark.index > at) nodes.push({ type: "text", value: text.slice(at, mark.index) });
    nodes.push({ type: "link", url: `${CITATION}${index}`, children: [{ type: "text", value: String(index) }] });
    at = mark.index + mark[0].length;
  }
  if (at < text.length || !nodes.length) nodes.push({ type: "text", value: text.slice(at) });
  return nodes;
}
