// The policy of restarts, with simulated processes and a clock that the test controls.

import { describe, expect, it } from "vitest";
import { deferred } from "../../../test/support/until.ts";
import { TestClock } from "../../testing/clock.ts";
import type { Notice } from "../notices.ts";
import { type RestartOptions, restartConfig } from "../restarts.ts";
import { type ProcessEnding, Supervisor, type WorkerProcess } from "./supervisor.ts";

class SaidProcess implements WorkerProcess {
  readonly pid: number;
  readonly signals: string[] = [];
  readonly #ending = deferred<ProcessEnding>();
  readonly ended = this.#ending.promise;
  heardMs: number;
  workers = {};

  constructor(pid: number, heardMs: number) {
    this.pid = pid;
    this.heardMs = heardMs;
  }

  kill(signal: NodeJS.Signals): void {
    this.signals.push(signal);
    if (signal === "SIGKILL") this.#ending.resolve({ code: null, signal });
  }

  async end(code: number): Promise<void> {
    this.#ending.resolve({ code, signal: null });
    await this.ended;
  }
}

function setup(options: RestartOptions = {}, names: readonly (readonly string[])[] = [["greet"]]) {
  const clock = new TestClock();
  const notices: Notice[] = [];
  const started: SaidProcess[] = [];
  const restarted: string[] = [];
  const start = () => {
    const process = new SaidProcess(100 + started.length, clock.now());
    started.push(process);
    return process;
  };
  const supervisor = new Supervisor(
    names.map((tasks) => ({ tasks, start })),
    {
      clock,
      logger: (notice) => notices.push(notice),
      restarts: restartConfig(options),
      stopMsMax: 35_000,
      restarted: (tasks) => restarted.push(...tasks),
    },
  );
  const last = () => started.at(-1) as SaidProcess;
  /** Lets time pass. Every running process sends something each second. */
  const pass = async (ms: number) => {
    for (let left = ms; left > 0; left -= 1_000) {
      await clock.advance(Math.min(1_000, left));
      for (const process of started) process.heardMs = clock.now();
    }
  };
  return { clock, notices, started, restarted, supervisor, last, pass };
}

describe("a supervisor of worker processes", () => {
  it("[C-SUP-01, C-SUP-08] restarts a process that ended at once, the first time", async () => {
    const s = setup();
    expect(s.started).toHaveLength(1);
    await s.last().end(1);
    await s.clock.advance(0);
    expect(s.started).toHaveLength(2);
    expect(s.supervisor.workers().greet).toMatchObject({ alive: true, pid: 101, exitCode: 1, restarts: 1 });
  });

  it("[C-SUP-02, C-SUP-05, C-SUP-07] restarts nothing within the backoff, checks every 5 s, and doubles the backoff from 5 s on", async () => {
    const s = setup();
    const startedAtMs: number[] = [s.clock.now()];
    const beginMs = s.clock.now();
    while (s.started.length < 5) {
      const before = s.started.length;
      await s.last().end(1);
      await s.clock.advance(0);
      while (s.started.length === before) await s.pass(1_000);
      startedAtMs.push(s.clock.now());
    }
    // The second restart comes 5 s after the first, then 10 s, then 20 s, each at the time of a check.
    expect(startedAtMs.map((ms) => ms - beginMs)).toEqual([0, 0, 5_000, 15_000, 35_000]);
  });

  it("[C-SUP-06] waits no longer than 300 s", async () => {
    const s = setup({ backoff: 200_000 });
    await s.last().end(1);
    await s.clock.advance(0);
    await s.last().end(1);
    await s.pass(200_000);
    expect(s.started).toHaveLength(3);
    await s.last().end(1);
    await s.pass(295_000);
    expect(s.started).toHaveLength(3);
    await s.pass(5_000);
    expect(s.started).toHaveLength(4);
  });

  it("[C-SUP-03] restarts nothing when restarts are off, and reports that the worker is dead", async () => {
    const s = setup({ restart: false });
    await s.last().end(3);
    await s.pass(600_000);
    expect(s.started).toHaveLength(1);
    expect(s.supervisor.workers().greet).toMatchObject({ alive: false, pid: undefined, exitCode: 3, restarts: 0 });
  });

  it("[C-SUP-04] gives up after the configured number of restarts, and reports that once", async () => {
    const s = setup({ maxAttempts: 2, backoff: 0 });
    for (let count = 0; count < 3; count++) {
      await s.last().end(1);
      await s.pass(5_000);
    }
    await s.pass(60_000);
    expect(s.started).toHaveLength(3);
    expect(s.notices.filter(({ level }) => level === "error").map(({ message }) => message)).toEqual([
      "The worker of greet was restarted 2 times and is given up.",
    ]);
  });

  it("[C-SUP-10, C-SUP-12] counts restarts for each task, logs a warning with the exit code, and logs the restart", async () => {
    const s = setup({}, [["greet", "charge"], ["other"]]);
    await (s.started[0] as SaidProcess).end(7);
    await s.clock.advance(0);
    expect(s.restarted).toEqual(["greet", "charge"]);
    expect(s.notices).toEqual([
      { level: "warn", message: "The worker process of greet, charge ended with exit code 7." },
      { level: "info", message: "Restarted the worker of greet, charge (restart 1); another one would wait for 5.0 s." },
    ]);
    expect(s.supervisor.workers()).toMatchObject({ greet: { restarts: 1 }, charge: { restarts: 1 }, other: { restarts: 0, pid: 101 } });
  });

  it("[C-SUP-09] starts the next process only when the old one has ended", async () => {
    const s = setup();
    s.last().kill("SIGTERM");
    await s.pass(60_000);
    expect(s.started).toHaveLength(1);
    await s.last().end(0);
    await s.clock.advance(0);
    expect(s.started).toHaveLength(2);
  });

  it("[C-SUP-14, C-HND-07] reports a silent process as dead, and ends one that stays silent", async () => {
    const s = setup();
    await s.clock.advance(10_000);
    expect(s.supervisor.workers().greet).toMatchObject({ alive: true });
    await s.clock.advance(1_000);
    expect(s.supervisor.workers().greet).toMatchObject({ alive: false, pid: 100 });
    await s.clock.advance(55_000);
    expect(s.started[0]?.signals).toEqual(["SIGKILL"]);
    expect(s.started).toHaveLength(2);
    expect(s.supervisor.workers().greet).toMatchObject({ alive: true, exitCode: null, restarts: 1 });
  });

  it("[C-SUP-11] starts nothing while it stops, also when a process ends", async () => {
    const s = setup({}, [["greet"], ["other"]]);
    const stopped = s.supervisor.stop();
    await (s.started[0] as SaidProcess).end(1);
    s.supervisor.check();
    await s.clock.advance(5_000);
    expect(s.started).toHaveLength(2);
    await (s.started[1] as SaidProcess).end(0);
    await stopped;
    expect(s.notices).toEqual([]);
  });

  it("[C-SUP-13] sends SIGTERM, and kills a process that has not ended in time", async () => {
    const s = setup();
    const stopped = s.supervisor.stop();
    expect(s.last().signals).toEqual(["SIGTERM"]);
    await s.pass(34_000);
    expect(s.last().signals).toEqual(["SIGTERM"]);
    await s.pass(1_000);
    expect(s.last().signals).toEqual(["SIGTERM", "SIGKILL"]);
    await stopped;
  });

  it("kills a process after 5 s when it hangs or must release its tasks", async () => {
    const wedged = setup();
    await wedged.clock.advance(20_000);
    void wedged.supervisor.stop();
    await wedged.clock.advance(5_000);
    expect(wedged.last().signals).toEqual(["SIGTERM", "SIGKILL"]);
    const forced = setup();
    void forced.supervisor.stop();
    void forced.supervisor.stop({ force: true });
    await forced.pass(5_000);
    expect(forced.last().signals).toEqual(["SIGTERM", "SIGINT", "SIGKILL"]);
    await forced.supervisor.closed;
    const atOnce = setup();
    void atOnce.supervisor.stop({ force: true });
    expect(atOnce.last().signals).toEqual(["SIGTERM", "SIGINT"]);
  });
});
