import { EventEmitter } from "node:events";
import { expect, it } from "vitest";
import { onTermination } from "./signal.ts";

function setup() {
  const source = new EventEmitter();
  const seen: string[] = [];
  let now = 1_000;
  const remove = onTermination(
    source,
    (signal) => seen.push(`first ${signal}`),
    (signal) => seen.push(`again ${signal}`),
    () => now,
  );
  const after = (ms: number, signal: string) => {
    now += ms;
    source.emit(signal, signal);
  };
  return { source, seen, after, remove };
}

it("distinguishes the first signal from later signals, and leaves no listener behind", () => {
  const { source, seen, after, remove } = setup();
  after(0, "SIGTERM");
  after(200, "SIGTERM");
  remove();
  remove();
  expect(seen).toEqual(["first SIGTERM", "again SIGTERM"]);
  expect(source.listenerCount("SIGINT") + source.listenerCount("SIGTERM")).toBe(0);
});

it.each(["SIGINT", "SIGTERM"])("counts a %s that arrives twice at the same time as one, and a later one as a second", (signal) => {
  const { seen, after, remove } = setup();
  after(0, signal);
  after(20, signal);
  expect(seen).toEqual([`first ${signal}`]);
  after(200, signal);
  expect(seen).toEqual([`first ${signal}`, `again ${signal}`]);
  remove();
});

it("counts a different signal as a second one, also when it arrives at the same time", () => {
  const { seen, after, remove } = setup();
  after(0, "SIGINT");
  after(1, "SIGTERM");
  expect(seen).toEqual(["first SIGINT", "again SIGTERM"]);
  remove();
});
