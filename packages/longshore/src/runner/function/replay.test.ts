// One durable function in memory, without a server: its commands and its end.

import { describe, expect, it, onTestFinished, vi } from "vitest";
import { task } from "../../core/task.ts";
import { type CommandResult, commandsSize } from "../../core/turn.ts";
import { FunctionReplay } from "./replay.ts";
import { type FunctionScope, makeScope, seededRandom } from "./scope.ts";

const nothing = async () => ({ results: [], stop: true });

const double = task("double", async (n: number) => n * 2);

/** Calls the function for the first time. `result` passes it the result of a command. */
async function begin(body: (w: FunctionScope) => unknown) {
  const replay = new FunctionReplay({ input: null, startedAt: 0, after: 0, journal: new Map() });
  const { signal: cancelled } = new AbortController();
  await replay.begin(() => body(makeScope({ runId: "r", replay, random: seededRandom("r"), cancelled, log: () => {} })));
  const receive = async (node: number, result: Partial<CommandResult> = {}) => {
    await replay.receive([{ node, place: replay.place + 1, state: "done", at: 0, ...result }]);
    await replay.settle(nothing);
  };
  await replay.settle(nothing);
  return { replay, receive, commands: () => replay.takeCommands(100, commandsSize) };
}

/** A first turn that continues after its reports, which are recorded. */
async function beginTurn(body: (w: FunctionScope) => Promise<unknown>, log: string[]) {
  const replay = new FunctionReplay({ input: null, startedAt: 0, after: 0, journal: new Map() });
  const { signal: cancelled } = new AbortController();
  await replay.begin(() => body(makeScope({ runId: "r", replay, random: seededRandom("r"), cancelled, log: () => {} })));
  const flush = async () => {
    const commands = replay.takeCommands(100, commandsSize).map(({ name, place }) => (place === undefined ? name : `${name} ${place}`));
    log.push(`reports ${commands.join(", ")}`);
    return { results: [], stop: false };
  };
  return { replay, flush };
}

function unhandledRejections() {
  const seen = vi.fn();
  process.on("unhandledRejection", seen);
  onTestFinished(() => void process.off("unhandledRejection", seen));
  return seen;
}

describe("a durable function in memory", () => {
  it.each([
    ["a step", (w: FunctionScope) => w.step(double, 1)],
    ["a child run", (w: FunctionScope) => w.run("child", null)],
    ["a signal", (w: FunctionScope) => w.signal("go", { timeout: "1s" })],
    ["a map", (w: FunctionScope) => w.map([1], double)],
  ])("may await %s after it has failed", async (_what, early) => {
    const unhandled = unhandledRejections();
    const { replay, receive } = await begin(async (w) => {
      const first = early(w);
      await w.sleep("1s");
      return first.then(null, (error: Error) => error.message);
    });
    await receive(1, { state: "failed", error: "broken" });
    await receive(2);
    expect(replay.end).toEqual({ kind: "done", output: expect.stringContaining("broken") });
    expect(unhandled).not.toHaveBeenCalled();
  });

  it("fails when its output has a value that is not JSON, with the place", async () => {
    const { replay } = await begin(async () => ({ total: 10n }));
    expect(replay.end).toMatchObject({
      kind: "failed",
      error: expect.stringMatching(/output of the function is not JSON: total is a bigint/),
    });
  });

  it("gets a rejected promise for an input that is not JSON", async () => {
    const { replay } = await begin(async (w) => w.call("double", { n: 10n }).catch((error: Error) => error.message));
    expect(replay.end).toMatchObject({ output: expect.stringMatching(/input of step double is not JSON: n is a bigint/) });
  });

  it("ends with continueAs although its code catches what continueAs throws", async () => {
    const { replay } = await begin(async (w) => {
      try {
        return w.continueAs({ n: 2 });
      } catch {
        return "caught";
      }
    });
    expect(replay.end).toEqual({ kind: "continued", input: { n: 2 } });
  });

  it("gets an error when a side effect waits for commands", async () => {
    const { replay, receive } = await begin(async (w) =>
      w.local("all", async () => w.step(double, 1)).catch((error: Error) => error.message),
    );
    await receive(1);
    expect(replay.end).toMatchObject({ output: expect.stringMatching(/side effect all asks for step double.*outside of w\.local/) });
  });

  it("starts no more items of a map when one has failed", async () => {
    const { replay, receive, commands } = await begin(async (w) => {
      await w.map([1, 2, 3], double, { concurrency: 1 }).catch(() => null);
      await w.signal("go");
    });
    await receive(1, { state: "failed", error: "broken" });
    expect(replay.end).toBeNull();
    expect(commands().map(({ kind }) => kind)).toEqual(["step", "signal"]);
  });

  it("begins a side effect only when the results before it are reported", async () => {
    const log: string[] = [];
    const { replay, flush } = await beginTurn(async (w) => {
      const effect = (name: string) => w.local(name, () => void log.push(name));
      await Promise.all([effect("a"), effect("b")]);
      await effect("c");
      w.version("change", 2);
      await effect("d");
      return "end";
    }, log);
    await replay.settle(flush, true);
    expect(log).toEqual(["a", "b", "reports a 1, b 2", "c", "reports c 3, change 4", "d"]);
    expect(replay.end).toEqual({ kind: "done", output: "end" });
    expect(replay.takeCommands(100, commandsSize)).toMatchObject([{ name: "d", place: 5 }]);
  });

  it("receives the result of a side effect in the order of the server while a step is open", async () => {
    const log: string[] = [];
    const { replay, flush } = await beginTurn(async (w) => {
      const step = w.step(double, 1).then((result) => log.push(`step ${result}`));
      await w.local("a", () => void log.push("a"));
      await w.local("b", () => void log.push("b"));
      await step;
      return "end";
    }, log);
    const results = [
      { node: 1, place: 1, state: "done" as const, at: 1, output: 2 },
      { node: 2, place: 2, state: "done" as const, at: 1 },
    ];
    // The first report opens the step and has the result of `a`, which was received before.
    await replay.settle(async () => (replay.place === 1 ? flush() : { ...(await flush()), results }), true);
    expect(log).toEqual(["a", "reports double, a 1", "b", "reports b"]);
  });

  it("uses no command number for the pauses between attempts of a side effect", async () => {
    let calls = 0;
    const fails = () => {
      if (++calls === 1) throw new Error("busy");
    };
    const retry = { limit: 1, backoff: { kind: "fixed" as const, delayMs: 0 } };
    const { replay, receive } = await begin(async (w) => {
      await w.local("fails", fails, { retry });
      return w.random();
    });
    await receive(1);
    expect(replay.end).toEqual({ kind: "done", output: seededRandom("r")() });
  });

  it("divides commands with large inputs into several reports that a server accepts", async () => {
    const { commands } = await begin(async (w) => w.map([3, 3, 6, 0, 0], (size) => w.call("size", "x".repeat(size * 100_000))));
    const reports = Array.from({ length: 4 }, () => commands().map(({ node }) => node));
    expect(reports).toEqual([[1], [2], [3], [4, 5]]);
  });
});
