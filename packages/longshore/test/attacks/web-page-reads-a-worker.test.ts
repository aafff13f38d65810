// The attacker is a web page that a developer has open. Its host name is changed to resolve to 127.0.0.1, where a worker of the developer
// serves /metrics and /health, with task names and error texts. For the browser this is the page's own site, so the page could once read
// them.

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

it("a worker on loopback accepts only names of loopback", async () => {
  const worker = await serveWorker({ port: 0 }, { metrics: () => "a_metric 1\n", workers: () => ({}) });
  onTestFinished(() => worker.close());
  for (const path of ["/metrics", "/health"]) {
    for (const host of ["rebound.example", "rebound.example:80", "127.0.0.1.rebound.example", "localhost.rebound.example:1"])
      expect([host, await statusAs(worker.url, path, host)]).toEqual([host, 403]);
    for (const host of ["localhost", "127.0.0.1:9100", "[::1]:9100", new URL(worker.url).host])
      expect([host, await statusAs(worker.url, path, host)]).toEqual([host, 200]);
  }
});
