// The wall clock of the server's machine is 40 days ahead: for 75 seconds, permanently, or already at its start.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { type OpenEngine, openEngineWithStore } from "../support/engine.ts";
import { MachineClock } from "../support/machine-clock.ts";

const dayMs = 86_400_000;
const termMs = 30_000;
const ended = 20;

async function open(clock: MachineClock, directory: string): Promise<OpenEngine> {
  const engine = await openEngineWithStore({ directory, clock });
  onTestFinished(() => engine.close());
  return engine;
}

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), "longshore-clock-"));
  onTestFinished(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

const post = (engine: OpenEngine, id: string) =>
  engine.board.post([{ id, step: "s", lanes: [{ name: "work", labels: [] }], input: "null", policy: null }]);

async function claim(engine: OpenEngine) {
  const { tasks } = await engine.store.board.claim({ reach: { names: ["work"], labels: [] }, holder: "ann", termMs, max: 1 });
  const task = tasks[0];
  if (task === undefined) throw new Error("No task was handed out.");
  return { taskId: task.id, grant: task.grant };
}

async function end(engine: OpenEngine, count: number): Promise<void> {
  for (let at = 0; at < count; at++) {
    await post(engine, `ended-${at}`);
    const hold = await claim(engine);
    expect(await engine.board.complete(hold, "1")).toBe("ok");
  }
}

async function kept(engine: OpenEngine): Promise<number> {
  const { items } = await engine.reader.tasks({ limit: 1_000 });
  return items.filter(({ id }) => id.startsWith("ended-")).length;
}

it("for 75 seconds: no ended run is removed, and no worker that renews its lease loses it", async () => {
  const clock = new MachineClock();
  const engine = await open(clock, folder());
  await end(engine, ended);
  await post(engine, "held");
  const hold = await claim(engine);
  await clock.pass(5);
  let sinceRenewal = 0;
  const renew = async () => {
    if (++sinceRenewal < termMs / 3_000) return;
    sinceRenewal = 0;
    expect((await engine.board.extend(hold)).verdict).toBe("ok");
  };
  clock.set(40 * dayMs);
  await clock.pass(75, renew);
  clock.set(-40 * dayMs);
  await clock.pass(120, renew);
  expect(await kept(engine)).toBe(ended);
  expect(await engine.board.complete(hold, "1")).toBe("ok");
});

it("for an hour: no ended run is removed", async () => {
  const clock = new MachineClock();
  const engine = await open(clock, folder());
  await end(engine, ended);
  clock.set(40 * dayMs);
  await clock.pass(3_600);
  expect(await kept(engine)).toBe(ended);
});

it("before a start: no ended run is removed, after any number of restarts", async () => {
  const directory = folder();
  const clock = new MachineClock();
  const first = await open(clock, directory);
  await end(first, ended);
  await clock.pass(70);
  await first.close();
  const ahead = new MachineClock();
  ahead.set(40 * dayMs);
  for (let restart = 0; restart < 3; restart++) {
    const engine = await open(ahead, directory);
    await ahead.pass(130);
    expect(await kept(engine)).toBe(ended);
    await engine.close();
  }
});
