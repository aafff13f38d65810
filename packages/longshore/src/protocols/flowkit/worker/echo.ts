// The default handler of the role `echo`, as in the reference: five short steps.

import type { Batch } from "../wire/batch.ts";
import { BatchResult } from "../wire/batch.ts";
import { RoleHandler } from "./handler.ts";
import type { RunContext } from "./run-context.ts";

const steps = 5;
const stepMs = 50;

export class EchoHandler extends RoleHandler {
  override readonly role = "echo";

  override async process_batch(_batch: Batch, ctx: RunContext): Promise<BatchResult> {
    for (let step = 0; step < steps; step++) await ctx.clock.sleep_ms(stepMs);
    return new BatchResult({ success: true, metrics: { echoed: steps } });
  }
}
