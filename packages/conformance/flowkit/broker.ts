// Starts a real Kafka of its own and says where it is, for programs that cannot start one themselves. It ends with this one.
import { JavaKafka } from "../../longshore/test/support/java-service.ts";

const kafka = await JavaKafka.start();
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => void kafka.remove().then(() => process.exit(0)));
process.stdout.write(`${JSON.stringify({ broker: kafka.broker })}\n`);
