import { describe, expect, it, onTestFinished, vi } from "vitest";
import { deferred } from "../../test/support/until.ts";
import { TestClock } from "../testing/clock.ts";
import { type ExportResult, Outlet } from "./outlet.ts";

const unavailable = Object.assign(new Error("No connection established"), { code: 14 });
const refused = Object.assign(new Error("Bad Request"), { code: 400, data: "trouble" });

function setup(answer: (batch: readonly number[]) => Promise<Error | undefined>) {
  const clock = new TestClock();
  const exported: number[][] = [];
  const notices: string[] = [];
  let shutdowns = 0;
  const outlet = new Outlet<number>({
    what: "numbers",
    clock,
    exporter: {
      export: (batch, done) => {
        exported.push([...batch]);
        void answer(batch).then((error) => done(error === undefined ? { code: 0 } : { code: 1, error }));
      },
      shutdown: async () => void shutdowns++,
    },
    episodes: {
      failing: (_what, error) => notices.push((error as Error).message) > 0,
      working: () => notices.push("works"),
    },
  });
  const add = (...batch: number[]) => {
    for (const _ of batch) outlet.added();
    const over = deferred<ExportResult>();
    outlet.export(batch, over.resolve);
    return over.promise;
  };
  const written = vi.spyOn(process.stderr, "write").mockReturnValue(true);
  onTestFinished(() => written.mockRestore());
  const lost = () => written.mock.calls.map(([text]) => String(text));
  return { clock, exported, notices, outlet, add, lost, shutdowns: () => shutdowns };
}

describe("an outlet", () => {
  it("retries while gRPC cannot deliver, then drops the batch in favour of newer ones", async () => {
    const s = setup(async ([first]) => (first === 1 ? unavailable : undefined));
    const result = s.add(1);
    for (const pauseMs of [1_000, 2_000, 5_000, 10_000]) {
      await s.clock.armed(pauseMs);
      await s.clock.advance(pauseMs);
    }
    expect(await result).toMatchObject({ code: 1 });
    expect(await s.add(2)).toEqual({ code: 0 });
    expect(s.exported).toEqual([[1], [1], [1], [1], [1], [2]]);
    expect(s.notices).toEqual([...Array(5).fill("No connection established"), "works"]);
    await s.outlet.close(async () => {});
    expect(s.lost()).toEqual([expect.stringContaining("lost 1 numbers")]);
  });

  it("does not repeat a refused batch, and reports the response", async () => {
    const s = setup(async () => refused);
    await s.add(1);
    expect(s.exported).toEqual([[1]]);
    expect(s.notices).toEqual(["the collector answered 400: trouble"]);
  });

  it("waits at the end for batches that are being sent or retried", async () => {
    let isBack = false;
    const s = setup(async () => (isBack ? undefined : unavailable));
    const first = s.add(1);
    await s.clock.armed(1_000);
    isBack = true;
    const closed = s.outlet.close(() => s.add(2));
    await s.clock.advance(1_000);
    await Promise.all([first, closed]);
    expect(s.exported).toEqual([[1], [2], [1]]);
    expect(s.shutdowns()).toBe(1);
    expect(s.lost()).toEqual([]);
  });

  it("waits five seconds at the end for a collector that does not respond, and counts all dropped records", async () => {
    const s = setup(() => new Promise(() => {}));
    void s.add(1, 2);
    s.outlet.added();
    const closed = s.outlet.close(async () => {});
    await s.clock.advance(5_000);
    await closed;
    expect(s.lost()).toEqual([expect.stringContaining("lost 3 numbers")]);
  });
});
