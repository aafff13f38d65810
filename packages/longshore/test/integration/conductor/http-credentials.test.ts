// Credentials that the definition of an HTTP task contains: they are sent, and no reader of the task sees them.

import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, it, onTestFinished } from "vitest";
import { startConductor } from "../../support/conductor-rest.ts";
import { operator } from "../../support/conductor-world.ts";
import { eventually } from "../../support/workflow-graph.ts";

const secret = "t0p-s3cret";

/** Refuses the first request. */
async function target() {
  process.env.CONDUCTOR_HTTP_TARGETS = "127.0.0.1";
  const seen: (string | undefined)[] = [];
  const server = createServer((request, response) => {
    seen.push(`${request.headers.authorization} ${request.headers.cookie} ${request.headers["x-api-key"]}`);
    response.writeHead(seen.length === 1 ? 503 : 200).end("{}");
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    delete process.env.CONDUCTOR_HTTP_TARGETS;
    server.closeAllConnections();
    server.close();
  });
  return { uri: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, seen };
}

it.each([false, true])(
  "shows no credentials of an HTTP task, and sends them again after a restart and a retry (in http_request: %s)",
  async (inField) => {
    const { uri, seen } = await target();
    const headers = {
      ...{ Authorization: `Bearer ${secret}`, cookie: `session=${secret}`, "X-Api-Key": secret },
      ...{ "proxy-authorization": "Basic ${workflow.secrets.PROXY}", accept: "text/plain" },
    };
    const request = { uri, method: "GET", headers };
    const first = await startConductor();
    await first.taskDef({ name: "call", retryCount: 0 });
    const inputParameters = inField ? { http_request: request } : request;
    const id = await first.begin([operator("HTTP", "call", { inputParameters })]);
    await eventually(async () => (await first.status(id)) === "FAILED");
    await first.close();

    const c = await startConductor({}, first);
    expect((await c.order("POST", id, "/retry")).status).toBe(204);
    await eventually(async () => (await c.status(id)) === "COMPLETED");
    const sent = `Bearer ${secret} session=${secret} ${secret}`;
    expect(seen).toEqual([sent, sent]);

    const { taskId, inputData } = await c.record(id, "call");
    const shown = {
      ...{ Authorization: "***", cookie: "***", "X-Api-Key": "***" },
      ...{ "proxy-authorization": "Basic ${workflow.secrets.PROXY}", accept: "text/plain" },
    };
    expect(inField ? inputData.http_request : inputData).toMatchObject({ uri, headers: shown });
    const { items } = await own<{ items: { id: string }[] }>(`/runs/${id}/tasks`);
    const at = `/tasks/${items[0]?.id}`;
    expect(JSON.stringify(await own(at))).toContain("***");
    const texts = [
      ...[`/workflow/${id}`, `/tasks/${taskId}`].map((path) => c.ask("GET", path)),
      ...[at, `${at}/input`, `${at}/attempts?io=true`, `/runs/${id}`, `/runs/${id}/tasks`].map(async (path) =>
        JSON.stringify(await own(path)),
      ),
    ];
    for (const text of await Promise.all(texts)) expect(text).not.toContain(secret);

    async function own<T>(path: string): Promise<T> {
      const response = await fetch(`${c.url}/api/longshore/v1${path}`);
      expect(response.status).toBe(200);
      return (await response.json()) as T;
    }
  },
);
