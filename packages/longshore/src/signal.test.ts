import { EventEmitter } from "node:events";
import { expect, it } from "vitest";
import { onTermination } from "./signal.ts";

it("tells the first signal from later ones and leaves no listener behind", () => {
  const source = new EventEmitter();
  const seen: string[] = [];
  const remove = onTermination(
    source,
    (signal) => seen.push(`first ${signal}`),
    (signal) => seen.push(`again ${signal}`),
  );
  source.emit("SIGTERM", "SIGTERM");
  source.emit("SIGINT", "SIGINT");
  remove();
  remove();
  expect(seen).toEqual(["first SIGTERM", "again SIGINT"]);
  expect(source.listenerCount("SIGINT") + source.listenerCount("SIGTERM")).toBe(0);
});
