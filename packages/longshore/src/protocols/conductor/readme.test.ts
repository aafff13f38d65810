// README.md shows requests of a worker. This test lets a worker do everything that the page shows, and the server must receive each request
// of the page.

import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { z } from "zod";
import { json, updateV2 } from "../../../test/support/conductor-stub.ts";
import { setup } from "../../../test/support/conductor-worker.ts";
import { heldTask } from "../../../test/support/reference-worker.ts";
import { until } from "../../../test/support/until.ts";
import { task } from "../../core/task.ts";

interface Example {
  readonly line: string;
  readonly body: unknown;
}

// The part about the server is tested by readme-server.test.ts.
const [page = ""] = readFileSync(new URL("README.md", import.meta.url), "utf8").split("\n## Server\n");

function examples(): Example[] {
  return [...page.matchAll(/```http\n([\s\S]*?)```/g)].map(([, block = ""]) => {
    const [head = "", second = ""] = block.split("\n\n");
    const hasBody = head.includes("content-type");
    return { line: head.split("\n")[0] as string, body: hasBody ? JSON.parse(second) : undefined };
  });
}

it("every request of the page is one that a worker sends", async () => {
  const held = heldTask("held");
  const name = z.object({ name: z.string() });
  const greet = task(
    "greet",
    (input, ctx) => {
      ctx.log(`greeting ${input.name}`);
      return { text: `Hello, ${input.name}!` };
    },
    { input: name, concurrency: 1 },
  );
  const fails = task("fails", () => {
    throw Object.assign(new Error("out of stock"), { stack: undefined });
  });
  const later = task("later", (_input: unknown, ctx) => ctx.defer("30s", { page: 2 }));
  await using s = await setup({
    tasks: [greet, fails, later, held.task],
    wire: {
      keyId: "key-1",
      keySecret: "s3cret",
      cancelPoll: "8s",
      workers: { greet: { registerTaskDef: true, taskDef: { retryCount: 3, responseTimeoutSeconds: 10 } } },
    },
    before: (stub) => {
      stub.misbehave(/^POST \/api\/token$/, json(200, { token: "t-1" }));
      stub.enqueue("greet", { inputData: { name: "Ada" }, responseTimeoutSeconds: 10 });
      stub.enqueue("fails");
      stub.enqueue("later");
      stub.enqueue("held", { responseTimeoutSeconds: 10 });
      // The first result is sent by v1, as on a server without v2.
      stub.misbehave(updateV2, { status: 405 }, 1);
    },
  });
  await held.started;
  await until(() => s.stub.results.length === 3);
  await s.clock.armed(8_000, 2);
  await s.clock.advance(8_000);
  await until(() => s.stub.requests.some(({ path }) => path === "/api/tasks/task-4"));
  held.resolve({});
  const seen = s.stub.requests.map(({ method, path, query, body }) => ({
    line: `${method} ${path}${query === "" ? "" : `?${query}`}`,
    body,
  }));
  const shown = examples();
  expect(shown.length).toBeGreaterThan(8);
  for (const example of shown) {
    // Which of the two updates sends which result is chance, but the results are not.
    const sameKind = example.line.startsWith("POST /api/tasks") ? /^POST \/api\/tasks(\/update-v2)?$/ : undefined;
    const found = seen.filter(({ line }) => (sameKind === undefined ? line === example.line : sameKind.test(line)));
    expect(found.map(({ body }) => body)).toContainEqual(example.body);
  }
});
