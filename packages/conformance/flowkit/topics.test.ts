// A broker with its default settings creates every topic that a program names, with one partition. Python workers and our server start in any
// order.
import { beforeAll, describe, expect, it } from "vitest";
import { openFileStage, openStage } from "../src/stage.ts";
import { until } from "../src/until.ts";
import { makes } from "./graphs.ts";
import { startCoordinator } from "./operator.ts";
import { openPlaces, type Place } from "./place.ts";
import { startPythonWorker, workedOn } from "./python.ts";

const stage = openFileStage();
let place: () => Place;
beforeAll(async () => {
  place = await openPlaces(stage, { makesTopics: true });
});

const WORKERS = 3;
const NODES = 6;
/** How often a worker looks for new partitions. With aiokafka's default, this test would last five minutes. */
const LOOK_MS = 500;

describe.concurrent("Python workers of one role, on a broker that creates topics automatically", () => {
  it.for([["after"], ["before"]] as const)(
    "all get work, and no work is lost, when they start %s our coordinator",
    async ([when], context) => {
      const stage = openStage(context);
      const at = place();
      const role = at.role("src");
      const options = { roles: { [role]: "produce" as const }, overlapping_upsert: true, metadata_max_age_ms: LOOK_MS };
      const start = () => Promise.all(Array.from({ length: WORKERS }, () => startPythonWorker(stage, at, options)));
      const early = when === "before" ? await start() : [];
      // The role is not in its configuration: announcements name it.
      const operator = await startCoordinator(stage, at, []);
      const workers = when === "after" ? await start() : early;
      await until("work for each of them", async () => {
        const nodes = Array.from({ length: NODES }, (_, index) => makes(`u${index}`, role, { batches: 1, size: 1, ms: 100 }));
        expect((await operator.ended(await operator.submit(nodes))).status).toBe("finished");
        return workers.every((worker) => workedOn(worker) > 0) || undefined;
      });
      if (when === "before") expect(operator.log()).toContain("had 1 of 8 partitions");
    },
  );
});
