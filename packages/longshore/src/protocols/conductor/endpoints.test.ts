// Decides each operation of the real server's OpenAPI document from the routes, and compares docs/reference/conductor-endpoints.md with the decisions.
// `npx vitest run src/protocols/conductor/endpoints.test.ts -u` in packages/longshore writes the page.

import { describe, expect, it } from "vitest";
import { actions } from "../../core/actions.ts";
import { createRouter } from "../../net/listener/router.ts";
import { serve } from "../../server/index.ts";
import { unservedCalls } from "./server/missing-endpoints.ts";
import { shapeOf } from "./server/monitoring.ts";
import { type RealOperation, realOperations } from "./server/operations.ts";
import { type ConductorDeps, conductorRoutes } from "./server/routes.ts";

const page = new URL("../../../../../docs/reference/conductor-endpoints.md", import.meta.url);

const group = conductorRoutes({
  runs: { startsFor: () => {} },
  schedules: { renewsRuns: () => {} },
  starter: {},
} as unknown as ConductorDeps);
const router = createRouter([group], group);
const refusedCalls = new Map(unservedCalls.map(([method, path, , what]) => [`${method} ${shapeOf(`/api${path}`)}`, what]));

/** Routes of our own API, with responses of our own. */
const ofOurs = new Set(["GET /health"]);

type Decision = { kind: "served"; scope: string } | { kind: "refused"; why: string } | { kind: "unknown" };

function decisionOn({ method, path }: RealOperation): Decision {
  if (ofOurs.has(`${method} ${path}`)) return { kind: "served", scope: "anyone" };
  const refusal = refusedCalls.get(`${method} ${shapeOf(path)}`);
  if (refusal !== undefined) return { kind: "refused", why: refusal };
  const { entry, unserved } = router.find(method, path);
  // A route with a parameter at the place of a literal name would read this name as an id.
  if (entry !== undefined && shapeOf(entry.route.path) === shapeOf(path)) {
    const { action, also = action } = entry.route;
    return { kind: "served", scope: [...new Set([actions[action].who, actions[also].who])].join(" and ") };
  }
  return unserved === undefined ? { kind: "unknown" } : { kind: "refused", why: unserved };
}

function tableOf(name: string, decided: readonly (readonly [RealOperation, Decision])[]): string {
  const rows = decided.filter(([operation]) => operation.group === name).map(([operation, decision]) => rowOf(operation, decision));
  return [`## ${name}`, "", "| operation | what it does | here | token |", "| --- | --- | --- | --- |", ...rows, ""].join("\n");
}

function rowOf({ method, path, what }: RealOperation, decision: Decision): string {
  const [here, scope] =
    decision.kind === "served" ? ["served", decision.scope] : [`refused: ${decision.kind === "refused" ? decision.why : "unknown"}`, ""];
  return `| \`${method} ${path}\` | ${what} | ${here} | ${scope} |`;
}

describe("the operations of the real server's OpenAPI document", () => {
  const decided = realOperations.map((operation) => [operation, decisionOn(operation)] as const);

  it("are each served, or refused with the reason", () => {
    expect(decided.filter(([, { kind }]) => kind === "unknown").map(([{ method, path }]) => `${method} ${path}`)).toEqual([]);
  });

  it("are served by our own API where this protocol has no route for them", async () => {
    await using server = await serve({ ephemeral: true, port: 0, logger: { level: "silent" } });
    for (const operation of ofOurs) {
      const [method, path] = operation.split(" ") as [string, string];
      expect((await fetch(`${server.url}${path}`, { method })).status, operation).toBe(200);
    }
  });

  it("are listed on a page with what this server does for each", async () => {
    const served = decided.filter(([, { kind }]) => kind === "served").length;
    const groups = [...new Set(realOperations.map((operation) => operation.group))];
    const text = [
      "# Conductor's endpoints",
      "",
      `The real Conductor server, 3.32.3, has ${decided.length} operations in its OpenAPI document. Longshore serves ${served} of them. It answers each of the others`,
      "with 404 and a body in Conductor's format, whose message contains the reason below. The column token names the scope that a token needs; a",
      "token of the scope `operator` may do everything. A test makes this page from the routes.",
      "",
      ...groups.map((name) => tableOf(name, decided)),
    ].join("\n");
    await expect(text).toMatchFileSnapshot(page.pathname);
  });
});
