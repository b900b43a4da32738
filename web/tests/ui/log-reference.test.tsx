import { ApiError, requestProblemOf, type Message } from "@threadkeep/client";
import { expect, it } from "vitest";

import { ReplyEnding } from "../../src/chat/reply/reply-ending";
import { ProblemBar } from "../../src/ui/problem-bar";
import { draw } from "../draw";

const TURN = "01a1de9e-5d85-73ee-bf77-ae3c43100aaa";
const failed = (more: Partial<Message>) =>
  ({ id: "m", status: "FAILED", turnId: TURN, parts: [], error: { code: "MODEL_ERROR", message: "No.", retryable: false }, ...more }) as unknown as Message;

it("says what the server’s log calls the turn of an answer that failed", () => {
  const drawn = draw(
    <ReplyEnding message={failed({})} hasText={false}>
      {null}
    </ReplyEnding>,
  );
  expect(drawn.text).toContain(`Reference: ${TURN}`);
  drawn.again(
    <ReplyEnding message={failed({ status: "CANCELLED", error: undefined })} hasText={false}>
      {null}
    </ReplyEnding>,
  );
  expect(drawn.text).not.toContain(TURN);
});

it("says what the log calls a request only where the fault is the server’s", () => {
  const problem = (status: number) => requestProblemOf(new ApiError(status, "X", "No.", null, null, null, "3f0c9a51be7d2246"));
  const drawn = draw(<ProblemBar problem={problem(500)} onDismiss={() => {}} />);
  expect(drawn.text).toContain("Reference: 3f0c9a51be7d2246");
  drawn.again(<ProblemBar problem={problem(409)} onDismiss={() => {}} />);
  expect(drawn.text).not.toContain("Reference");
});
