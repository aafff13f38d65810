// Starts a real Kafka and prints its address, for programs that cannot start one themselves. The broker ends when this program ends.
import { JavaKafka } from "../../longshore/test/support/java-service.ts";

const kafka = await JavaKafka.start();
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => void kafka.remove().then(() => process.exit(0)));
process.stdout.write(`${JSON.stringify({ broker: kafka.broker })}\n`);
