// A worker token holds one node of FlowKit and reads its sources. A request names a thousand sources, the same one many times. The answer had
// 500 parts of each, made in one turn: 500,000 short parts took 1.4 s of CPU. Without new parts, each change of a source made every waiting
// reader look at all its sources in one turn.

import { expect, it, onTestFinished } from "vitest";
import { artifactRoutes } from "../../src/protocols/flowkit/server/artifacts/routes.ts";
import { TestClock } from "../../src/testing/clock.ts";
import { openOwnArtifacts } from "../support/flowkit-artifacts.ts";
import { call, groupOf, startServer } from "../support/http.ts";
import { countTurns } from "../support/turn-count.ts";
import { deferred, until } from "../support/until.ts";

const sourcesMax = 1_000;
const now = AbortSignal.abort();

it("an answer has a limited number of parts, and a turn looks at a limited number of sources", async () => {
  const world = await openOwnArtifacts();
  onTestFinished(() => world.engine.close());
  const [source, reader] = await world.begin(["source", "reader"]);
  if (source === undefined || reader === undefined) throw new Error("There are no attempts.");
  await world.store.putPartials(
    source,
    Array.from({ length: 600 }, (_, at) => ({ uid: `p${at}`, meta: {} })),
  );
  const looks = countTurns();
  const { parts } = world.engine;
  const unread = parts.unread.bind(parts);
  parts.unread = (...given) => {
    looks.add();
    return unread(...given);
  };
  const from = (after: number) => Array.from({ length: sourcesMax }, () => ({ node: "source", after }));
  const pages = await world.store.pages(reader, from(0), now);
  expect(pages.flatMap((page) => page.parts)).toHaveLength(500);
  await world.store.pages(reader, from(600), now);
  expect(looks.total).toBeGreaterThan(sourcesMax);
  // Two thousand rows in a turn, where the end of one and the begin of the next may fall between two looks.
  expect(looks.most).toBeLessThanOrEqual(2 * 63);
});

it("readers that wait for very many sources together make room for each other", async () => {
  let waiting = 0;
  const ended = deferred<void>();
  const artifacts = {
    isHeld: async () => true,
    pages: (_consumer: unknown, _positions: unknown, signal: AbortSignal) => {
      waiting++;
      return new Promise((resolve) => {
        signal.addEventListener("abort", () => {
          waiting--;
          ended.resolve();
          resolve([]);
        });
      });
    },
  };
  const { routes, dismiss } = artifactRoutes({ artifacts: artifacts as never, clock: new TestClock() });
  onTestFinished(dismiss);
  const { url } = await startServer({ groups: [groupOf("flowkit", routes)] });
  const sources = Array.from({ length: sourcesMax }, () => ({ node_id: "a", after: 0 }));
  const body = JSON.stringify({ task_id: "t", node_id: "n", attempt_epoch: 1, worker_id: "w", wait_ms: 30_000, sources });
  const read = () => call(`${url}/flowkit/v1/artifacts/read`, { method: "POST", headers: { "content-type": "application/json" }, body });
  const answers: Promise<{ status: number }>[] = [];
  for (let at = 0; at < 100; at++) answers.push(read());
  await until(() => waiting === 100);
  answers.push(read());
  await ended.promise;
  expect((await Promise.race(answers)).status).toBe(200);
  await until(() => waiting === 100);
  dismiss();
  await Promise.all(answers);
});
