// The same as fixtures.test.ts, for the chapters that need the scheduler, file storage or variables. Also compares the list of operations that
// docs/reference/conductor-endpoints.md is made from with the OpenAPI document of the real server.
import { expect, it } from "vitest";
import { realOperations } from "../../longshore/src/protocols/conductor/server/operations.ts";
import { exchange } from "../src/exchange.ts";
import { openFileStage } from "../src/stage.ts";
import { fixtureSuite } from "./differential/fixture-suite.ts";
import { serviceChapters, serviceVariables } from "./differential/services/chapters.ts";
import { startReferenceServer } from "./reference.ts";

const stage = openFileStage();
let url = "";

// Whether a response shows the child of a run that has just begun depends on the real server's background work.
const changing = new Set(["signal-strategies"]);

fixtureSuite(serviceChapters, changing, async () => {
  const server = await startReferenceServer(stage, { transactions: "deferred", services: serviceVariables });
  url = server.url;
  return server;
});

it("the list of endpoints is that of the real server's OpenAPI document", async () => {
  const { body } = await exchange(url, { method: "GET", path: "/api-docs" });
  const { paths } = JSON.parse(body) as { paths: Record<string, Record<string, unknown>> };
  const theirs = Object.entries(paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
  );
  expect(realOperations.map(({ method, path }) => `${method} ${path}`).toSorted()).toEqual(theirs.toSorted());
});
