// The worker half of Conductor with a small server, over real sockets. Time is a test clock. For everything else, the tests wait until the
// server has received it.

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Task } from "../../src/core/task.ts";
import { type ConductorOptions, type ConductorTransport, conductor } from "../../src/protocols/conductor/worker/index.ts";
import type { Notice } from "../../src/runner/notices.ts";
import { TestClock } from "../../src/testing/clock.ts";
import { type WorkHandle, type WorkOptions, work } from "../../src/work.ts";
import { ConductorStub, type StubOptions } from "./conductor-stub.ts";

export interface Setup extends AsyncDisposable {
  readonly stub: ConductorStub;
  readonly clock: TestClock;
  readonly worker: WorkHandle;
  readonly transport: ConductorTransport;
  readonly notices: Notice[];
  /** The folder of kept results; `outbox: true` in the options. */
  readonly outbox: string;
}

export interface SetupOptions {
  readonly tasks: Task[];
  readonly wire?: ConductorOptions;
  readonly stub?: StubOptions;
  readonly slots?: number;
  /** Keeps results in a folder of this test; none are kept otherwise. */
  readonly outbox?: boolean;
  readonly work?: Partial<WorkOptions>;
  readonly before?: (stub: ConductorStub, outbox: string) => void | Promise<void>;
}

/** `pollTimeout` is set by default, so that no poll waits at the server. */
export async function setup(options: SetupOptions): Promise<Setup> {
  const stub = await ConductorStub.start(options.stub);
  const outbox = await mkdtemp(join(tmpdir(), "longshore-outbox-"));
  await options.before?.(stub, outbox);
  const clock = new TestClock();
  const notices: Notice[] = [];
  const wire = { env: {}, workerId: "w1", pollTimeout: 100, cancelPoll: false as const, ...options.wire };
  const transport = conductor(stub.url, { ...wire, outbox: options.outbox ? outbox : false });
  const worker = await work({
    tasks: options.tasks,
    on: transport,
    ...(options.slots === undefined ? {} : { slots: options.slots }),
    signals: false,
    clock,
    logger: (notice) => void notices.push(notice),
    ...options.work,
  });
  return {
    stub,
    clock,
    worker,
    transport,
    notices,
    outbox,
    async [Symbol.asyncDispose]() {
      await stopped(worker, clock);
      await stub.close();
      await rm(outbox, { recursive: true, force: true });
    },
  };
}

/** Stops at once. Time passes meanwhile, so that retries and grace periods end. */
export async function stopped(worker: WorkHandle, clock: TestClock): Promise<void> {
  let over = false;
  void worker.stop({ force: true }).then(() => {
    over = true;
  });
  while (!over) await clock.advance(50);
}
