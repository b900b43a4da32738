/** Converts models' formulas to the syntax of the formula parser; money stays money. */

const CODE = /(`+)[\s\S]*?\1|^ {0,3}(?:`{3,}|~{3,})[\s\S]*?(?:^ {0,3}(?:`{3,}|~{3,})|$(?![\s\S]))/gm;
// As pandoc has it: no blank after the first mark, none before the last, and no digit after that.
const INLINE = /(?<![\\$])\$(?!\$)(?=\S)((?:[^$\\\n]|\\.)*?\S)\$(?![\d$])/g;
// On its own line it is a block formula.
const OWN_LINE = /^([ \t]*)\$\$(.+?)\$\$[ \t]*$/gm;

export function hasMath(text: string): boolean {
  return /\$|\\[([]/.test(text);
}

export function withMathMarks(text: string): string {
  let done = "";
  let at = 0;
  for (const code of text.matchAll(CODE)) {
    done += prose(text.slice(at, code.index)) + code[0];
    at = code.index + code[0].length;
  }
  return done + prose(text.slice(at));
}

function prose(text: string): string {
  const display: string[] = [];
  const keep = (formula: string) => `\u0000${display.push(formula) - 1}\u0000`;
  return text
    .replace(/\\\[([\s\S]+?)\\\]/g, (_, formula: string) => keep(`\n$$\n${formula.trim()}\n$$\n`))
    .replace(OWN_LINE, (_, indent: string, formula: string) =>
      keep(["$$", formula.trim(), "$$"].map((line) => indent + line).join("\n")),
    )
    .replace(/\$\$[\s\S]+?\$\$/g, (formula) => keep(formula))
    .replace(/\\\((.+?)\\\)/g, (_, formula: string) => keep(`$${formula.trim()}$`))
    .replace(INLINE, (formula) => keep(formula))
    .replace(/(?<!\\)\$/g, "\\$")
    // oxlint-disable-next-line no-control-regex -- a kept formula is marked by a NUL on each side
    .replace(/\u0000(\d+)\u0000/g, (_, index: string) => display[Number(index)] ?? "");
}
