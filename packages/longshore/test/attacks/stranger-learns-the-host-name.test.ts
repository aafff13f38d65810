// The attacker has no token and learns the name of the machine from refusals, which helps to find other targets.

import { hostname } from "node:os";
import { expect, it } from "vitest";
import { realGroups } from "../support/admin.ts";
import { startGraphServer } from "../support/workflow-graph.ts";

it("no refusal contains the name of the machine", async () => {
  const { send } = await startGraphServer({ tokens: ["operator:operator-secret-0123456789"], logger: { level: "silent" } });
  const name = JSON.stringify(hostname());
  const told: string[] = [];
  for (const { method, path } of (await realGroups()).flatMap(({ routes }) => routes)) {
    for (const url of [path.replace(/:[^/]+/g, "some-id"), `${path.replace(/:[^/]+/g, "some-id")}/nothing`]) {
      const { text } = await send(method, url, { headers: { "content-type": "application/json" }, body: "{" });
      if (text.includes(name)) told.push(`${method} ${url}`);
    }
  }
  expect(told).toEqual([]);
});
