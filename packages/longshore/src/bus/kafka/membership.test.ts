import type { Consumer } from "@platformatic/kafka";
import { expect, it } from "vitest";
import { encodeAssignment, encodeSubscription } from "../../net/kafka/assignment.ts";
import type { KafkaModule } from "./client.ts";
import { Membership } from "./membership.ts";
import { Shutdown } from "./shutdown.ts";

const kGetConnection = Symbol("connection");
const kGetApi = Symbol("api");

type Apis = { readonly [name: string]: (args: unknown[]) => unknown };
type Answered = (error: Error | null, answer?: unknown) => void;

/** A client whose broker leads the group itself and names every new member `m1`. Records the name of each join. */
function clientOf(joins: unknown[], more: Apis = {}): Consumer {
  const apis: Apis = {
    JoinGroup(args) {
      joins.push(args[3]);
      return { memberId: "m1", generationId: joins.length, leader: "another", members: [] };
    },
    SyncGroup: () => ({ assignment: encodeAssignment(new Map([["t", [0]]]), { counts: { t: 1 }, added: {} }) }),
    ...more,
  };
  const client = {
    topics: { current: [] },
    findGroupCoordinator: async () => 1,
    metadata: async () => ({ brokers: new Map([[1, {}]]), topics: new Map([["t", { partitionsCount: 2 }]]) }),
    [kGetConnection]: (_broker: unknown, done: Answered) => done(null, {}),
    [kGetApi]: (name: string, done: Answered) =>
      done(null, (_connection: unknown, ...args: unknown[]) => {
        const answered = args.pop() as Answered;
        answered(null, apis[name]?.(args));
      }),
  };
  return client as unknown as Consumer;
}

it("joins again with a new client and its old name, so the group does not wait until the old member expires", async () => {
  const joins: unknown[] = [];
  const kafka = { kGetConnection, kGetApi } as unknown as KafkaModule;
  const membership = new Membership({ kafka, group: "g", sessionMs: 10_000, beatMs: 1_000, closing: new Shutdown(), unreadable: () => {} });
  for (let session = 0; session < 2; session++) {
    membership.use(clientOf(joins));
    await membership.join(["t"]);
  }
  expect(joins).toEqual(["", "m1"]);
});

it("gives no partitions to a member whose subscription cannot be read, reports this, and gives all partitions to the others", async () => {
  const bytes = (hex: string) => Buffer.from(hex, "hex");
  const members = [
    { memberId: "m1", metadata: encodeSubscription(["t"]) },
    // A text with a length of -2 bytes would make the reader go back to this length, 2^31 - 1 times.
    { memberId: "backwards", metadata: bytes("00007fffffffffFE0000000000000000") },
    { memberId: "cut", metadata: bytes("0000") },
  ];
  let assigned: { memberId: string; assignment: Buffer }[] = [];
  const client = clientOf([], {
    JoinGroup: () => ({ memberId: "m1", generationId: 1, leader: "m1", members }),
    SyncGroup: (args) => {
      assigned = args.at(-1) as typeof assigned;
      return { assignment: assigned.find(({ memberId }) => memberId === "m1")?.assignment };
    },
  });
  const reports: string[] = [];
  const kafka = { kGetConnection, kGetApi } as unknown as KafkaModule;
  const unreadable = (found: readonly string[]) => void reports.push(...found);
  const membership = new Membership({ kafka, group: "g", sessionMs: 10_000, beatMs: 1_000, closing: new Shutdown(), unreadable });
  membership.use(client);
  expect((await membership.join(["t"])).assignment).toEqual(new Map([["t", [0, 1]]]));
  expect(assigned.map(({ memberId }) => memberId)).toEqual(["backwards", "cut", "m1"]);
  expect(reports).toEqual([expect.stringMatching(/^backwards: a list has 2147483647 entries/), expect.stringMatching(/^cut: /)]);
});
