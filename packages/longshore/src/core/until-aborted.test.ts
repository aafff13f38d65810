import { expect, it } from "vitest";
import { untilAborted } from "./until-aborted.ts";

it("settles with the result of the work", async () => {
  const { signal } = new AbortController();
  await expect(untilAborted(Promise.resolve(1), signal)).resolves.toBe(1);
  await expect(untilAborted(Promise.reject(new Error("no")), signal)).rejects.toThrow("no");
});

it("rejects with the reason when the signal aborts, and ignores the later result of the work", async () => {
  const abort = new AbortController();
  const waiting = untilAborted(Promise.reject(new Error("no")), AbortSignal.abort(new Error("early")));
  const later = untilAborted(new Promise(() => {}), abort.signal);
  abort.abort(new Error("late"));
  await expect(waiting).rejects.toThrow("early");
  await expect(later).rejects.toThrow("late");
});
