import { expect, it } from "vitest";
import { hints } from "./hints.ts";

it("a FlowKit worker may take tasks from a lane without labels; the hint names the server's brokers", () => {
  const around = { url: "http://h:1", asksToken: false };
  const lane = { name: "greet", labels: [] };
  expect(hints({ ...around, flags: {} }).workerFor(lane)).toBe("a FlowKit worker of the role greet with FLOWKIT_URL=http://h:1");
  expect(hints({ ...around, flags: { flowkitBrokers: "kafka:9092" } }).workerFor(lane)).toBe(
    "a FlowKit worker of the role greet with KAFKA_BOOTSTRAP_SERVERS=kafka:9092 and FLOWKIT_URL=http://h:1",
  );
  expect(hints({ ...around, flags: {} }).workerFor({ ...lane, labels: ["gpu"] })).toBeNull();
});
