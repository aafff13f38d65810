// README.md, "REST", against a real server: its table lists every call, and its exchanges are made in order.

import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { section, unquoted } from "../../../test/support/markdown.ts";
import { exchangesIn, expectAnswer, play } from "../../../test/support/readme-exchange.ts";
import { serve } from "../../server/index.ts";
import { apiRoutes } from "./server/api/rest.ts";
import type { Services } from "./server/api/services.ts";

const page = readFileSync(new URL("README.md", import.meta.url), "utf8");
const rest = section(page, "REST");
const runIdShown = "01a1e418-82cf-79a6-924a-91892909bee1";

it("the page lists every call of the REST face, and no other", () => {
  const served = apiRoutes({} as Services, true).routes.map(({ method, path }) => `${method} ${path.replace(/:(\w+)/g, "{$1}")}`);
  const listed = rest.rows.map(([method, path = ""]) => `${method} /api/v1${unquoted(path)}`);
  expect(listed.toSorted()).toEqual(served.toSorted());
});

it("every exchange of the page is answered as it is shown", async () => {
  await using server = await serve({ ephemeral: true, port: 0, logger: { level: "silent" } });
  let runId = runIdShown;
  const real = (text: string) => text.replaceAll(runIdShown, runId);
  const shown = exchangesIn(rest.text);
  expect(shown.length).toBeGreaterThan(4);
  for (const exchange of shown) {
    const { response, text } = await play(server.url as string, exchange, real);
    if (exchange.method === "POST" && exchange.path.endsWith("/runs")) runId = JSON.parse(text).summary.runId;
    expectAnswer(exchange, response, text, real);
  }
});
