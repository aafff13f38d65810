// One side of the embedded comparison, in a process of its own that loads nothing of the other sides.
import type { CeilingResult } from "./bare-sqlite.ts";
import { closedLoop, type LoopResult, Witness } from "./closed-loop.ts";
import { withFolder } from "./environment.ts";
import { answerApart } from "./processes.ts";

export interface EmbeddedRequest {
  readonly side: "ours" | "bullmq" | "sqlite";
  readonly concurrency: number;
  readonly warmUpSeconds: number;
  readonly seconds: number;
}

await answerApart<EmbeddedRequest, LoopResult | CeilingResult>((request) =>
  withFolder(async (folder) => {
    if (request.side === "sqlite") {
      const { bareSqlite } = await import("./bare-sqlite.ts");
      return bareSqlite(folder, { ...request, batch: request.concurrency });
    }
    const open = request.side === "ours" ? (await import("./ours.ts")).openTasks : (await import("./bullmq.ts")).openBullmq;
    const witness = new Witness();
    const side = await open(folder, request.concurrency, witness.handler);
    const result = await closedLoop(side, witness, request);
    await side.close();
    return result;
  }),
);
