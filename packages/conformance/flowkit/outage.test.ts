// The broker is down for a minute, longer than any lease. Nodes that had begun end, no work is lost, no node has to be started again, and the
// operator can read what the server waits for.
import { setTimeout as pause } from "node:timers/promises";
import { beforeAll, expect, it } from "vitest";
import { openFileStage, openStage } from "../src/stage.ts";
import { until } from "../src/until.ts";
import { startCoordinator } from "./operator.ts";
import { openPlaces, type Place } from "./place.ts";
import { startPythonWorker } from "./python.ts";
import { startOurWorker } from "./workers.ts";

const stage = openFileStage();
let place: () => Place;
beforeAll(async () => {
  place = await openPlaces(stage);
});

const OUTAGE_MS = 60_000;
const BATCHES = 40;

it("a broker that is down for a minute only costs time, and is reported", async (context) => {
  const stage = openStage(context);
  const at = place();
  const [src, sink] = [at.role("src"), at.role("sink")];
  const operator = await startCoordinator(stage, at, [src, sink]);
  const leases = { leaseTtlSec: 5, hbIntervalSec: 1 };
  const [first, second] = await Promise.all([
    startOurWorker(stage, at, { workerId: "w-src", roles: { [src]: "produce" }, ...leases }),
    startOurWorker(stage, at, { workerId: "w-sink", roles: { [sink]: "consume" }, ...leases }),
    startPythonWorker(stage, at, { worker_id: "w-python", roles: { [sink]: "consume" }, lease_ttl_sec: 5, hb_interval_sec: 1 }),
  ]);
  const pull = { input_adapter: "pull.from_artifacts", input_args: { from_node: "u", poll_ms: 50 } };
  const nodes = [
    { node_id: "u", type: src, io: { input_inline: { batches: BATCHES, size: 2, ms: 100 } } },
    { node_id: "d", type: sink, depends_on: ["u"], io: { start_when: "ready", input_inline: pull } },
  ];
  const begun = await operator.submit(nodes);
  await until("some batches", async () => ((await operator.artifacts(begun, "u")).length > 2 ? true : undefined));

  await at.kafka.down("SIGKILL");
  const meanwhile = await operator.submit(nodes);
  await pause(OUTAGE_MS);
  expect(operator.log()).toMatch(/"level":"warn".*Trouble with .*Kafka at 127\.0\.0\.1/);
  await at.kafka.up();

  const expected = Array.from({ length: 2 * BATCHES }, (_, index) => `item-${index}`).sort();
  for (const id of [begun, meanwhile]) {
    expect((await operator.ended(id)).status).toBe("finished");
    for (const node of ["u", "d"]) {
      expect((await operator.artifacts(id, node)).flatMap(({ meta }) => meta.skus).sort()).toEqual(expected);
    }
  }
  expect(operator.log()).toMatch(/No more trouble with .*Kafka/);
  expect([first.hasEnded(), second.hasEnded()]).toEqual([false, false]);
});
