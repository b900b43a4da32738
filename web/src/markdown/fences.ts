/** Marks code whose last line has arrived: it can be shown as what it is while the rest of the text is still coming. */

interface Node {
  type: string;
  position?: { start: { offset?: number }; end: { offset?: number } };
  data?: { hProperties?: Record<string, unknown> };
  children?: Node[];
}

const CLOSED = /^(`{3,}|~{3,})[^]*\n[ \t>]*\1[`~]*\s*$/;

export const closedFences = () => (tree: Node, file: { value: unknown }) => mark(tree, String(file.value));

function mark(node: Node, text: string): void {
  node.children?.forEach((it) => mark(it, text));
  if (node.type !== "code" || !node.position) return;
  const isClosed = CLOSED.test(text.slice(node.position.start.offset, node.position.end.offset));
  if (isClosed) node.data = { ...node.data, hProperties: { ...node.data?.hProperties, closed: true } };
}
