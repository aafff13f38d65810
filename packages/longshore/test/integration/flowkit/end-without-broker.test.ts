// Programs that are stopped while their broker is unavailable. They must end on their own with code 0, for any number of unsent records.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, vi } from "vitest";
import { startLongshore, startServer, temporaryFolder } from "../../support/cli.ts";
import { kafkaMissing, ownKafka } from "../../support/kafka.ts";

/** The start of a broker takes five seconds on an idle machine, and forty on a busy one. */
const brokerTestMs = 120_000;

describe.skipIf(kafkaMissing !== undefined)(
  `an end without a broker${kafkaMissing === undefined ? "" : ` (needs ${kafkaMissing})`}`,
  () => {
    it(
      "a server with an unsent command and a worker end gracefully",
      async () => {
        const kafka = await ownKafka();
        const cwd = temporaryFolder();
        writeFileSync(join(cwd, "flowkit.json"), JSON.stringify({ worker_types: ["indexer"] }));
        writeFileSync(
          join(cwd, "worker.mjs"),
          `import { task } from "longshore"; export const indexer = task("indexer", async () => ({}));`,
        );
        const server = await startServer(["--data", "data", "--flowkit-brokers", kafka.broker, "--flowkit-config", "flowkit.json"], {
          cwd,
        });
        const env = { KAFKA_BOOTSTRAP_SERVERS: kafka.broker, FLOWKIT_URL: server.url };
        const worker = startLongshore(["work", "worker.mjs", "--isolate", "thread"], { cwd, env });
        const page = async (path: string) => (await fetch(`${server.url}${path}`)).text();
        const seen = { timeout: brokerTestMs };
        await vi.waitUntil(async () => (await page("/api/longshore/v1/workers")).includes('"flowkit"'), seen);

        await kafka.down("SIGKILL");
        const body = JSON.stringify({ graph: { nodes: [{ node_id: "a", type: "indexer" }] } });
        const submitted = await fetch(`${server.url}/flowkit/v1/tasks`, {
          method: "POST",
          headers: { "content-type": "application/json" },
          body,
        });
        expect(submitted.status).toBeLessThan(300);
        await vi.waitUntil(async () => /^longshore_flowkit_outbox_pending 1$/m.test(await page("/metrics")), seen);
        const queue = await vi.waitUntil(async () => {
          const { items } = JSON.parse(await page("/api/longshore/v1/queues")) as {
            items: { lane: string; waiting: { reason: string } }[];
          };
          return items.find(({ lane, waiting }) => lane === "indexer" && waiting?.reason === "unreachable");
        }, seen);
        const text = expect.stringMatching(/^it is sent as soon as that is possible: Kafka at .* has been out of reach for \d+ s \(.+\)$/);
        expect(queue).toMatchObject({ ready: 0, sent: 1, waiting: { text } });

        server.kill("SIGTERM");
        worker.kill("SIGTERM");
        expect(await server.ended).toMatchObject({ code: 0 });
        expect(await worker.ended).toMatchObject({ code: 0 });
      },
      brokerTestMs,
    );
  },
);
