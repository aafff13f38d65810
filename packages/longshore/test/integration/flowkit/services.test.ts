// The services that the tests of this folder use: they are available, and clients can use them.
import { Admin } from "@platformatic/kafka";
import { MongoClient } from "mongodb";
import { describe, expect, it, onTestFinished } from "vitest";
import { kafkaMissing, sharedKafka } from "../../support/kafka.ts";
import { mongoMissing, sharedMongo } from "../../support/mongo.ts";
import { eventually } from "../../support/workflow-graph.ts";

describe.skipIf(kafkaMissing !== undefined)(`Kafka${kafkaMissing === undefined ? "" : ` (needs ${kafkaMissing})`}`, () => {
  it("is shared by all tests of a run, which use different names", async () => {
    const [one, other] = [await sharedKafka(), await sharedKafka()];
    expect(one.brokers).toEqual(other.brokers);
    expect(one.prefix).not.toBe(other.prefix);
    const admin = new Admin({ clientId: "test", bootstrapBrokers: [...one.brokers] });
    onTestFinished(() => admin.close());
    await admin.createTopics({ topics: [`${one.prefix}topic`], partitions: 4, replicas: 1 });
    // The broker shows a topic some moments after it has created it.
    const mine = async () => (await admin.listTopics()).filter((name) => name.startsWith(one.prefix));
    await eventually(async () => (await mine()).length > 0);
    expect(await mine()).toEqual([`${one.prefix}topic`]);
  });
});

describe.skipIf(mongoMissing !== undefined)(`MongoDB${mongoMissing === undefined ? "" : ` (needs ${mongoMissing})`}`, () => {
  it("responds to the driver", async () => {
    const { url, database } = await sharedMongo();
    const client = new MongoClient(url);
    onTestFinished(() => client.close());
    const things = client.db(database).collection("things");
    await things.updateOne({ name: "a" }, { $set: { size: 1 } }, { upsert: true });
    expect(await things.findOne({ name: "a" })).toMatchObject({ name: "a", size: 1 });
  });
});
