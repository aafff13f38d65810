import type { Consumer } from "@platformatic/kafka";
import { expect, it } from "vitest";
import { encodeAssignment } from "../../net/kafka/assignment.ts";
import type { KafkaModule } from "./client.ts";
import { Membership } from "./membership.ts";
import { Shutdown } from "./shutdown.ts";

const kGetConnection = Symbol("connection");
const kGetApi = Symbol("api");

type Answered = (error: Error | null, answer?: unknown) => void;

/** A client whose broker leads the group itself and calls every newcomer `m1`; records the name of each join. */
function clientOf(joins: unknown[]): Consumer {
  const apis: { [name: string]: (args: unknown[]) => unknown } = {
    JoinGroup(args) {
      joins.push(args[3]);
      return { memberId: "m1", generationId: joins.length, leader: "another", members: [] };
    },
    SyncGroup: () => ({ assignment: encodeAssignment(new Map([["t", [0]]]), { counts: { t: 1 }, added: {} }) }),
  };
  const client = {
    topics: { current: [] },
    findGroupCoordinator: async () => 1,
    metadata: async () => ({ brokers: new Map([[1, {}]]), topics: new Map() }),
    [kGetConnection]: (_broker: unknown, done: Answered) => done(null, {}),
    [kGetApi]: (name: string, done: Answered) =>
      done(null, (_connection: unknown, ...args: unknown[]) => {
        const answered = args.pop() as Answered;
        answered(null, apis[name]?.(args));
      }),
  };
  return client as unknown as Consumer;
}

it("joins again with another client under its old name, so the group does not wait for the old one to expire", async () => {
  const joins: unknown[] = [];
  const kafka = { kGetConnection, kGetApi } as unknown as KafkaModule;
  const membership = new Membership({ kafka, group: "g", sessionMs: 10_000, beatMs: 1_000, closing: new Shutdown() });
  for (let session = 0; session < 2; session++) {
    membership.use(clientOf(joins));
    await membership.join(["t"]);
  }
  expect(joins).toEqual(["", "m1"]);
});
