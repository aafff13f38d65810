// Our consumers and aiokafka's in one group, with Kafka's classic group protocol. Both get partitions, whichever of them is the leader. When
// a member leaves, the others get its partitions.
import { beforeAll, describe, expect, it } from "vitest";
import { openKafkaBus } from "../../longshore/src/bus/kafka.ts";
import type { Bus, BusConsumer } from "../../longshore/src/core/bus/bus.ts";
import type { Child } from "../src/child.ts";
import { openFileStage, openStage, type Stage } from "../src/stage.ts";
import { until } from "../src/until.ts";
import { openPlaces, type Place } from "./place.ts";
import { pythonProgram } from "./python.ts";

const stage = openFileStage();
let place: () => Place;
beforeAll(async () => {
  place = await openPlaces(stage);
});

const PARTITIONS = 4;

interface Group {
  readonly topic: string;
  readonly bus: Bus;
  /** The records that our member has received. */
  readonly had: string[];
  ours(): BusConsumer;
  python(): Child;
  /** Sends this many records and returns their values. */
  send(count: number): Promise<string[]>;
}

async function openGroup(stage: Stage): Promise<Group> {
  const { brokers, prefix } = place();
  const topic = `${prefix}shared`;
  const bus = await openKafkaBus({ brokers: [brokers], partitions: PARTITIONS, sessionMs: 6_000, againMs: 10 });
  stage.onClose(() => bus.close());
  await bus.ensure([topic]);
  const had: string[] = [];
  let sent = 0;
  return {
    topic,
    bus,
    had,
    ours() {
      const handle = async (records: readonly { value: Uint8Array }[]): Promise<void> => {
        had.push(...records.map(({ value }) => Buffer.from(value).toString()));
      };
      return bus.subscribe({ group: `${prefix}group`, topics: [topic], from: "earliest", handle });
    },
    python: () => pythonProgram(stage, "group_member.py", [brokers, topic, `${prefix}group`]),
    async send(count) {
      const values = Array.from({ length: count }, () => `r${sent++}`);
      await bus.publish(values.map((value) => ({ topic, key: value, value })));
      return values;
    },
  };
}

const hadBy = (child: Child): string[] => [...child.output().matchAll(/^\{"record": "(\w+)"/gm)].map(([, value]) => value as string);
const assigned = (child: Child): number =>
  [...child.output().matchAll(/"assigned": \[([^\]]*)\]/g)].at(-1)?.[1]?.match(/\d+/g)?.length ?? 0;

/** Waits until the Python member has this many partitions. */
const settles = (child: Child, partitions: number): Promise<true> =>
  until(
    `${partitions} partitions for aiokafka`,
    () => (assigned(child) === partitions ? true : undefined),
    () => child.output(),
  );

async function everybodyHas(group: Group, child: Child, values: readonly string[]): Promise<void> {
  const missing = (): string[] => {
    const all = new Set([...group.had, ...hadBy(child)]);
    return values.filter((value) => !all.has(value));
  };
  await until(
    "all records",
    () => (missing().length === 0 ? true : undefined),
    () => ({ missing: missing(), python: child.output() }),
  );
}

describe.concurrent("a group of our consumers and aiokafka's", () => {
  it.for(["ours", "python"] as const)("[A25] shares the partitions when %s joined first", async (first, context) => {
    const stage = openStage(context);
    const group = await openGroup(stage);
    if (first === "ours") await group.ours().ready;
    const child = group.python();
    if (first === "python") {
      await settles(child, PARTITIONS);
      await group.ours().ready;
    }
    await settles(child, PARTITIONS / 2);
    const values = await group.send(100);
    await everybodyHas(group, child, values);
    expect(group.had.length).toBeGreaterThan(0);
    expect(hadBy(child).length).toBeGreaterThan(0);
    // No member joined or left meanwhile, so each record was delivered to one member, once.
    expect([...group.had, ...hadBy(child)].sort()).toEqual([...values].sort());
  });

  it("gives all partitions to aiokafka when our consumer leaves, and to ours when aiokafka is killed", async (context) => {
    const stage = openStage(context);
    const group = await openGroup(stage);
    const ours = group.ours();
    await ours.ready;
    const child = group.python();
    await settles(child, PARTITIONS / 2);
    await ours.close();
    await settles(child, PARTITIONS);
    const alone = await group.send(50);
    await until("aiokafka to have all", () => (alone.every((value) => hadBy(child).includes(value)) ? true : undefined));
    await group.ours().ready;
    await settles(child, PARTITIONS / 2);
    child.signal("SIGKILL");
    const after = await group.send(50);
    await everybodyHas(group, child, after);
  });
});
