import { expect, test } from "vitest";

import { Markdown } from "../../src/markdown/markdown";
import { PreviewedCode } from "../../src/markdown/previewed-code";
import { richText } from "../../src/ui/rich-text";
import { draw } from "../draw";

const TEXT = `## Ferries

They leave **at noon** [1], see [the plan](https://example.org/plan).[^1]

| Boat | Takes |
|---|--:|
| Fast | 45 min |

\`\`\`python
leaves = "12:00"
\`\`\`

[^1]: Not on Sundays.
`;

test("a reply is copied typeset, without the page's own buttons and classes", async () => {
  const { place } = draw(
    <article>
      <div data-kind="text">
        <Markdown text={TEXT} sources={1} />
      </div>
      <div data-kind="activity">Used plan</div>
    </article>,
  );
  const html = richText(place);
  expect(html).toContain("<h2>Ferries</h2>");
  expect(html).toContain("<strong>at noon</strong>");
  expect(html).toContain('<a href="https://example.org/plan">the plan</a>');
  expect(html).toContain('<td align="right">45 min</td>');
  expect(html).toContain('<pre><code>leaves = "12:00"</code></pre>');
  expect(html).toContain("<sup>1</sup>");
  expect(html).toContain("Not on Sundays.");
  expect(html).not.toMatch(/class=|<button|<div|Used plan|↩|#/);
});

test("a preview is copied as its code", () => {
  const { place } = draw(
    <div data-kind="text">
      <div className="markdown">
        <PreviewedCode kind="mermaid" language="mermaid" code="graph TD" />
      </div>
    </div>,
  );
  expect(richText(place)).toBe("<pre><code>graph TD</code></pre>");
});
