import { describe, expect, it } from "vitest";
import { TestClock } from "../../../../testing/clock.ts";
import { Keeper } from "./keeper.ts";

/** Something that runs until the test ends it. */
function setup() {
  const clock = new TestClock();
  const begun: { value: number; end(why: string): void; stopped: boolean }[] = [];
  const told: string[] = [];
  let refuse: string | null = null;
  let count = 0;
  const keeper = new Keeper<number>({
    clock,
    async begin() {
      if (refuse !== null) throw new Error(refuse);
      const value = count++;
      let end: (why: string) => void = () => {};
      const ended = new Promise<string>((resolve) => (end = resolve));
      const one = { value, end, stopped: false };
      begun.push(one);
      const stop = async () => {
        one.stopped = true;
        end("stopped");
      };
      return { value, ended, stop };
    },
    up: (value) => told.push(`up ${value}`),
    down: (why) => told.push(`down ${why}`),
  });
  const never = new AbortController().signal;
  return { clock, begun, told, keeper, never, refuse: (why: string | null) => (refuse = why) };
}

describe("something that is kept alive", () => {
  it("is started, and started again when it ends", async () => {
    const { clock, keeper, begun, told, never } = setup();
    keeper.start();
    expect(await keeper.ready(never)).toBe(0);
    begun[0]?.end("exit code 1");
    await clock.advance(1_000);
    expect(await keeper.ready(never)).toBe(1);
    expect(told).toEqual(["up 0", "down exit code 1", "up 1"]);
    await keeper.stop();
    expect(begun[1]?.stopped).toBe(true);
  });

  it("waits longer after each failed start, and reports the reason", async () => {
    const { clock, keeper, told, refuse, never } = setup();
    refuse("no port");
    keeper.start();
    await clock.advance(100);
    const early = told.length;
    await clock.advance(60_000);
    expect(early).toBe(1);
    expect(told.length).toBeLessThan(14);
    expect(new Set(told)).toEqual(new Set(["down no port"]));
    refuse(null);
    await clock.advance(40_000);
    expect(await keeper.ready(never)).toBe(0);
    await keeper.stop();
  });

  it("has short pauses again after it ran for a while", async () => {
    const { clock, keeper, begun, never } = setup();
    keeper.start();
    await keeper.ready(never);
    for (let at = 0; at < 5; at++) {
      begun.at(-1)?.end("again");
      await clock.advance(40_000);
    }
    const before = begun.length;
    await clock.advance(60_000);
    begun.at(-1)?.end("after a minute");
    await clock.advance(300);
    expect(begun.length).toBe(before + 1);
    await keeper.stop();
  });

  it("is replaced once, by the first caller that finds it unusable", async () => {
    const { clock, keeper, begun, told, never } = setup();
    keeper.start();
    const value = (await keeper.ready(never)) as number;
    await Promise.all([keeper.replace(value, "it does not answer"), keeper.replace(value, "it does not answer")]);
    await clock.advance(1_000);
    expect(await keeper.ready(never)).toBe(1);
    await keeper.replace(value, "late");
    expect(begun).toHaveLength(2);
    expect(told).toEqual(["up 0", "down it does not answer; stopped", "up 1"]);
    await keeper.stop();
  });

  it("no longer delays callers that have left, nor any caller after its stop", async () => {
    const { keeper, refuse, never } = setup();
    refuse("never");
    keeper.start();
    const gone = new AbortController();
    const waiting = keeper.ready(gone.signal);
    gone.abort();
    expect(await waiting).toBeNull();
    const patient = keeper.ready(never);
    await keeper.stop();
    expect(await patient).toBeNull();
    await keeper.stop();
  });
});
