import { EventEmitter } from "node:events";
import { expect, it } from "vitest";
import { continuationNote, untilInterrupted } from "./interruption.ts";

it("Ctrl-C ends the command with a note that the run continues, and with the exit code that shells use", async () => {
  const source = new EventEmitter();
  let given: AbortSignal | undefined;
  const follow = (signal: AbortSignal) => {
    given = signal;
    return new Promise<never>((_, reject) => signal.addEventListener("abort", () => reject(new Error("aborted"))));
  };
  const followed = untilInterrupted(follow, continuationNote("R1"), source);
  source.emit("SIGINT", "SIGINT");
  await expect(followed).rejects.toMatchObject({
    exitCode: 130,
    message: "run R1 continues without this command. See it with `longshore runs R1`, end it with `longshore cancel R1`.",
  });
  expect({ aborted: given?.aborted, listeners: source.listenerCount("SIGINT") }).toEqual({ aborted: true, listeners: 0 });
});

it("without a signal the result is returned, and no listener for signals remains", async () => {
  const source = new EventEmitter();
  expect(await untilInterrupted(async () => 7, "", source)).toBe(7);
  expect(source.listenerCount("SIGTERM")).toBe(0);
});
