import { expect, it } from "vitest";
import { openParts } from "../../../../test/support/parts.ts";
import type { Board } from "../../../engine/board/board.ts";
import type { Hold } from "../../../engine/board/task.ts";
import type { Reader } from "../../../engine/run/reader.ts";
import type { HttpRequest } from "../../../net/http/http.ts";
import { settleMerged } from "./reports-by-reference.ts";

it("keeps the output of each report, when both have read the output before either has written", async () => {
  const { board, ...parts } = await openParts("memory");
  await parts.define("w", ["a"]);
  await parts.start("w");
  const task = await parts.claim();
  const deps = {
    board: {
      defer: (hold: Hold, delayMs: number, output: string) => board.settle({ verb: "defer", hold, delayMs, output }),
    } as unknown as Board,
    reader: { task: (id: string) => board.task(id) } as unknown as Reader,
  };
  const report = (body: object) => {
    const request = { params: { status: "IN_PROGRESS" }, query: new URLSearchParams(), text: JSON.stringify(body) };
    return settleMerged(deps, task, request as unknown as HttpRequest);
  };
  expect(await Promise.all([report({ a: 1 }), report({ b: 2 }), report({ c: 3 })])).toEqual(["ok", "ok", "ok"]);
  expect(JSON.parse((await board.task(task.id))?.output as string)).toEqual({ a: 1, b: 2, c: 3 });
});
