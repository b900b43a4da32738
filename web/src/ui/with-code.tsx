/** A line in which names of tools stand between backticks: they are shown as code. */
export function WithCode({ text }: { text: string }) {
  return text.split("`").map((piece, index) => (index % 2 ? <code key={index}>{piece}</code> : piece));
}

/** The same line where there is no code, as in a label. */
export function withoutCode(text: string): string {
  return text.replaceAll("`", "");
}
