// `longshore work FILE` without other arguments, as an orchestrator starts it: the environment has the address of its tasks.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { longshore, startLongshore, temporaryFolder } from "../../support/cli.ts";
import { grpcCollector } from "../../support/collector.ts";
import { StepflowOrchestrator } from "../../support/stepflow-orchestrator.ts";

it("[S-QUEUE-18, S-OBS-12, S-OBS-13] pulls from the queue that the variables name, and exports to the collector that they name", async () => {
  const folder = temporaryFolder();
  const program =
    'import { task } from "longshore";\nexport const greet = task("greet", async ({ name }, ctx) => { ctx.log("greeting " + name); return "Hello, " + name; });\n';
  writeFileSync(join(folder, "worker.mjs"), program);
  const orchestrator = await StepflowOrchestrator.start();
  const collector = await grpcCollector();
  const worker = startLongshore(["work", "worker.mjs"], {
    cwd: folder,
    env: {
      STEPFLOW_TRANSPORT: "grpc",
      STEPFLOW_TASKS_URL: orchestrator.url,
      STEPFLOW_BLOB_URL: orchestrator.url,
      STEPFLOW_QUEUE_NAME: "node",
      STEPFLOW_OTLP_ENDPOINT: collector.endpoint,
      STEPFLOW_LOG_DESTINATION: "otlp,stderr",
    },
  });
  const observability = {
    traceId: "a1b2c3d4e5f67890a1b2c3d4e5f67890",
    spanId: "1234567890abcdef",
    runId: "r1",
    flowId: "f1",
    stepId: "s1",
  };
  await orchestrator.send(orchestrator.task("t1", { componentId: "greet", input: { name: "Ada" }, observability }));
  expect((await orchestrator.result("t1")).response?.output).toBe("Hello, Ada");
  expect(orchestrator.streams[0]?.request.queueName).toBe("node");
  worker.kill("SIGTERM");
  expect((await worker.ended).code).toBe(0);
  expect(collector.spans).toMatchObject([
    { traceId: observability.traceId, parentSpanId: observability.spanId, name: "component.execute", kind: 5 },
  ]);
  expect(collector.spans[0]?.resource["service.name"]).toBe("longshore-worker");
  const [span] = collector.spans;
  const line = { flow_id: "f1", run_id: "r1", step_id: "s1" };
  expect(collector.logs.find(({ body }) => body === "greeting Ada")).toMatchObject({ spanId: span?.spanId, attributes: line });
  const written = worker
    .text()
    .split("\n")
    .find((text) => text.includes("greeting Ada"));
  expect(JSON.parse(written ?? "")).toMatchObject({ ...line, level: "INFO", trace_id: observability.traceId, span_id: span?.spanId });
  expect(worker.stdout()).toBe("");
});

it("[S-QUEUE-14] refuses invalid variables with their names", async () => {
  const told = async (env: Record<string, string>) => (await longshore(["work", "worker.mjs"], { env })).stderr;
  expect(await told({ STEPFLOW_TRANSPORT: "smoke" })).toBe(
    'longshore: The environment variable STEPFLOW_TRANSPORT is "smoke", expected grpc, nats or http.\n',
  );
});
