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
  source.emit("SIGTERM", "SIGTERM");
  remove();
  remove();
  expect(seen).toEqual(["first SIGTERM", "again SIGTERM"]);
  expect(source.listenerCount("SIGINT") + source.listenerCount("SIGTERM")).toBe(0);
});

it("takes an interrupt that arrives twice at once for one, and a later one for a second", () => {
  const source = new EventEmitter();
  const seen: string[] = [];
  let now = 1_000;
  const remove = onTermination(
    source,
    () => seen.push("first"),
    () => seen.push("again"),
    () => now,
  );
  source.emit("SIGINT", "SIGINT");
  now += 20;
  source.emit("SIGINT", "SIGINT");
  expect(seen).toEqual(["first"]);
  now += 200;
  source.emit("SIGINT", "SIGINT");
  expect(seen).toEqual(["first", "again"]);
  remove();
});
