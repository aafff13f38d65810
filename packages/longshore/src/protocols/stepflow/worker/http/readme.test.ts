// wire/http/README.md shows exchanges. This test sends the requests in the order of the page to a worker, whose responses must be those of
// the page.

import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { z } from "zod";
import { type Any, setup } from "../../../../../test/support/stepflow-runtime.ts";
import { task } from "../../../../core/task.ts";
import { stepflowTask } from "../index.ts";

const [page = ""] = readFileSync(new URL("../../wire/http/README.md", import.meta.url), "utf8").split("\n## Our worker\n");

interface Example {
  readonly method: string;
  readonly path: string;
  readonly body: Any;
  readonly status: number;
  /** The messages of the response; several when it is a stream. */
  readonly answers: readonly Any[];
}

function examples(): Example[] {
  return [...page.matchAll(/```http\n([\s\S]*?)```/g)].map(([, block = ""]) => {
    const [head = "", ...parts] = block.trim().split("\n\n");
    const at = parts.findIndex((part) => /^\d{3}\n/.test(part));
    const [status = "", ...first] = (parts[at] ?? "").split("\n");
    const answers = [first.join("\n"), ...parts.slice(at + 1)].map((text) => JSON.parse(text.replace(/^data: /, "")));
    const [method = "", path = ""] = (head.split("\n")[0] ?? "").split(" ");
    return { method, path, body: at === 0 ? undefined : JSON.parse(parts[0] ?? ""), status: Number(status), answers };
  });
}

const greet = task("greet", ({ name }) => ({ text: `Hello, ${name}!` }), { description: "Greets.", input: z.object({ name: z.string() }) });
const keep = task("keep", async (input: unknown) => stepflowTask().putBlob(input));
const files = task("files", () => null, { path: "/files/{kind}/{*rest}" });

it("a worker sends every response that the page shows", async () => {
  await using s = await setup({
    tasks: [greet, keep, files],
    handshake: "none",
    http: { service: "my-worker", instanceId: "88d8ba8efea14d14" },
  });
  const shown = examples();
  expect(shown.length).toBeGreaterThan(7);
  const [, answerToCall] = shown.filter(({ body }) => body?.id === "<call>" || body?.id === "exec-002");
  for (const { method, path, body, status, answers } of shown) {
    // The response to a call is sent where the page shows the call.
    if (body?.id === "<call>") continue;
    if (body?.method !== "components/execute") {
      const answer = body === undefined ? await s.runtime.get(path) : await s.runtime.send(body);
      expect([method, answer.status, answer.json]).toEqual([body === undefined ? "GET" : "POST", status, answers[0]]);
      continue;
    }
    const { component, input, attempt, observability } = body.params;
    const respond = () => ({ result: answerToCall?.body.result });
    const execution = await s.runtime.execute(component, input, { id: body.id, attempt, observability, respond });
    const calls = execution.calls.map((call) => ({ ...call, id: "<call>" }));
    expect([execution.status, ...calls, execution.answer]).toEqual([status, ...answers]);
    expect(execution.acks.map((ack) => [ack.status, ack.json])).toEqual(calls.map(() => [answerToCall?.status, answerToCall?.answers[0]]));
  }
});
