// The attacker is a web page that a developer has open. Its name is made to lead to 127.0.0.1, where a worker of that developer serves /metrics and
// /health: names of tasks and texts of errors. For the browser that is the page's own site, so once the page could read them.

import { request } from "node:http";
import { expect, it, onTestFinished } from "vitest";
import { serveWorker } from "../../src/runner/http.ts";

async function statusAs(url: string, path: string, host: string): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const asked = request(`${url}${path}`, { headers: { host } }, (answer) => {
      answer.resume();
      resolve(answer.statusCode);
    });
    asked.once("error", reject).end();
  });
}

it("a worker on loopback answers to names of loopback alone", async () => {
  const worker = await serveWorker({ port: 0 }, { metrics: () => "a_metric 1\n", workers: () => ({}) });
  onTestFinished(() => worker.close());
  for (const path of ["/metrics", "/health"]) {
    for (const host of ["rebound.example", "rebound.example:80", "127.0.0.1.rebound.example", "localhost.rebound.example:1"])
      expect([host, await statusAs(worker.url, path, host)]).toEqual([host, 403]);
    for (const host of ["localhost", "127.0.0.1:9100", "[::1]:9100", new URL(worker.url).host])
      expect([host, await statusAs(worker.url, path, host)]).toEqual([host, 200]);
  }
});
