// The topics of commands: workers of a role share one out, so there must be a part of it for each of them.

import { expect, it } from "vitest";
import type { Bus, EnsureOptions } from "../../../src/bus/bus.ts";
import { openFlowkit } from "../../support/flowkit-world.ts";

async function setup(said: (options: EnsureOptions, topic: string) => void = () => {}) {
  const asked: { topic: string; sharedBy: number | undefined }[] = [];
  const bus = (own: Bus): Bus => ({
    name: own.name,
    publish: (records) => own.publish(records),
    subscribe: (subscription) => own.subscribe(subscription),
    ensure: async (topics, options = {}) => {
      for (const topic of topics) {
        asked.push({ topic, sharedBy: options.sharedBy });
        said(options, topic);
      }
      await own.ensure(topics);
    },
    close: () => own.close(),
  });
  const world = await openFlowkit({ bus, config: { worker_types: ["indexer"] } });
  /** For how many workers a topic was asked for, each time. */
  const sharedBy = (topic: string) => asked.filter((one) => one.topic === topic && one.sharedBy !== undefined).map((one) => one.sharedBy);
  return { world, asked, sharedBy };
}

it("the topic of a role is asked for at the start, and for each worker that comes", async () => {
  const { world, asked, sharedBy } = await setup();
  expect(sharedBy("cmd.indexer.v1")).toEqual([0]);
  for (let count = 1; count <= 3; count++) {
    await world.worker(`w${count}`, ["indexer"]);
    await world.until(async () => sharedBy("cmd.indexer.v1").includes(count));
  }
  // Events of one attempt stay in their order: that topic gets no more partitions than it was made with.
  expect(asked.filter(({ topic }) => topic === "status.indexer.v1").every((one) => one.sharedBy === undefined)).toBe(true);
});

it("a topic that had too few partitions is named in a warning", async () => {
  const { world } = await setup(({ widened }, topic) => widened?.(topic, 1, 8));
  expect(world.warnings.join()).toContain("The topic cmd.indexer.v1 had 1 of 8 partitions, so at most 1 workers were given its commands");
});
