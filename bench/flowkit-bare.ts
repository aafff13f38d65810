// Kafka's client by itself, for the ceiling of the FlowKit benchmark: one process publishes records of a size, another reads them.
// What is sent first warms up broker and clients, and is not counted.
//   flowkit-bare.js create|produce|consume BROKER TOPIC COUNT BYTES WARM_UP
import { Admin, Consumer, MessagesStreamModes, Producer, stringSerializers } from "@platformatic/kafka";

const [role, broker = "", topic = "", count = "0", bytes = "0", first = "0"] = process.argv.slice(2);
const counted = Number(count);
const warmUp = Number(first);
/** As many at once as a client collects well; more did not raise the rate. */
const GROUP = 500;
const IN_FLIGHT = 2;

const say = (fact: object): void => void process.stdout.write(`${JSON.stringify(fact)}\n`);
const now = (): number => performance.timeOrigin + performance.now();

/** As many partitions as our bus makes. */
const PARTITIONS = 8;

async function create(): Promise<void> {
  const admin = new Admin({ clientId: "ceiling", bootstrapBrokers: [broker] });
  await admin.createTopics({ topics: [topic], partitions: PARTITIONS, replicas: 1 });
  await admin.close();
  say({ ready: true });
}

async function consume(): Promise<void> {
  const consumer = new Consumer({ clientId: "ceiling", bootstrapBrokers: [broker], groupId: `${topic}.readers` });
  const stream = await consumer.consume({ topics: [topic], mode: MessagesStreamModes.EARLIEST, autocommit: 1_000, maxWaitTime: 100 });
  say({ ready: true });
  let seen = 0;
  for await (const _record of stream) if (++seen === warmUp + counted) break;
  say({ seen, endedAt: now() });
  await consumer.close(true);
}

async function produce(): Promise<void> {
  const producer = new Producer({ clientId: "ceiling", bootstrapBrokers: [broker], serializers: stringSerializers, acks: -1 });
  const value = "v".repeat(Number(bytes));
  const send = async (total: number): Promise<void> => {
    let sent = 0;
    const lane = async (): Promise<void> => {
      while (sent < total) {
        const from = sent;
        sent = Math.min(total, sent + GROUP);
        await producer.send({ messages: Array.from({ length: sent - from }, (_, at) => ({ topic, key: `k${from + at}`, value })) });
      }
    };
    await Promise.all(Array.from({ length: IN_FLIGHT }, lane));
  };
  await send(warmUp);
  const startedAt = now();
  await send(counted);
  say({ startedAt });
  await producer.close();
}

await (role === "create" ? create() : role === "produce" ? produce() : consume());
