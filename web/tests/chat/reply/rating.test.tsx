import { ApiError, type FeedbackBody, type FeedbackView } from "@threadkeep/client";
import { act, useState } from "react";
import { expect, it, vi } from "vitest";

import { LazyRatingForm } from "../../../src/chat/reply/lazy-rating-form";
import { RatingButtons } from "../../../src/chat/reply/rating-buttons";
import { click, draw, press, type, type Drawn } from "../../draw";

/** A reply that remembers its rating as the thread does. */
function Rated({ onRate }: { onRate: (body: FeedbackBody) => Promise<void> }) {
  const [feedback, setFeedback] = useState<FeedbackView>();
  const [isOpen, setOpen] = useState(false);
  const rate = async (body: FeedbackBody) => {
    setFeedback(body.rating ? { note: "", shareText: false, ...body, rating: body.rating } : undefined);
    await onRate(body).catch((error: unknown) => {
      setFeedback(feedback);
      throw error;
    });
  };
  return (
    <article className="reply">
      <div className="actions">
        <RatingButtons feedback={feedback} onRate={rate} onOpen={setOpen} />
      </div>
      <LazyRatingForm feedback={isOpen ? feedback : undefined} onRate={rate} onClose={() => setOpen(false)} />
    </article>
  );
}

const comes = (check: () => void) =>
  vi.waitFor(async () => {
    await act(async () => {});
    check();
  });
const pressed = (drawn: Drawn) => ["Good answer", "Bad answer"].map((it) => drawn.named(it).getAttribute("aria-pressed"));

it("rates at once, then takes a note and asks before anything is shared", async () => {
  const onRate = vi.fn(async () => {});
  const drawn = draw(<Rated onRate={onRate} />);
  await click(drawn.named("Bad answer"));
  expect(onRate).toHaveBeenLastCalledWith({ rating: "down" });
  expect(pressed(drawn)).toEqual(["false", "true"]);
  await comes(() => drawn.find("textarea"));
  expect(drawn.text).toContain("They can’t read the conversation.");
  await type(drawn.find<HTMLTextAreaElement>("textarea"), " Wrong year. ");
  await click(drawn.find("input[type=checkbox]"));
  expect(drawn.text).toContain("everything that the model received");
  await act(async () => drawn.find<HTMLFormElement>("form").requestSubmit());
  expect(onRate).toHaveBeenLastCalledWith({ rating: "down", note: "Wrong year.", shareText: true });
  await comes(() => expect(drawn.place.querySelector("form")).toBeNull());
  expect(document.activeElement).toBe(drawn.named("Bad answer"));
  await click(drawn.named("Good answer"));
  expect(onRate).toHaveBeenLastCalledWith({ rating: "up", note: "Wrong year.", shareText: true });
  await click(drawn.named("Good answer"));
  expect(onRate).toHaveBeenLastCalledWith({ rating: null });
  expect(pressed(drawn)).toEqual(["false", "false"]);
});

it("closes with Escape and keeps the rating", async () => {
  const onRate = vi.fn(async () => {});
  const drawn = draw(<Rated onRate={onRate} />);
  await click(drawn.named("Good answer"));
  await comes(() => drawn.find("textarea"));
  await press(drawn.find("textarea"), "Escape");
  expect(drawn.place.querySelector("form")).toBeNull();
  expect(pressed(drawn)).toEqual(["true", "false"]);
  expect(onRate).toHaveBeenCalledTimes(1);
});

it("takes back a rating that the server refuses", async () => {
  const drawn = draw(<Rated onRate={() => Promise.reject(new ApiError(404, "MESSAGE_NOT_FOUND", "Message not found."))} />);
  await click(drawn.named("Good answer"));
  expect(pressed(drawn)).toEqual(["false", "false"]);
  expect(drawn.place.querySelector("form")).toBeNull();
});
