// A server in a process of its own that runs Stepflow's flows, and may be killed in the middle of them.

import type { JsonObject } from "../../src/core/json/json.ts";
import type { ItemResult } from "../../src/protocols/stepflow/wire/messages.ts";
import { FlowsService, RunsService } from "../../src/protocols/stepflow/wire/services.ts";
import { startServer } from "./cli.ts";
import { channelTo } from "./grpc.ts";

export async function startStepflow(args: readonly string[]) {
  const server = await startServer(args);
  const address = new URL(server.url).host;
  const channel = channelTo(address);
  return {
    port: server.port,
    address,
    channel,
    /** Starts a run of one item, and returns its id. */
    async run(flow: JsonObject, input: string) {
      const { flowId } = await channel.unary(FlowsService.StoreFlow, { flow });
      const { summary } = await channel.unary(RunsService.CreateRun, { flowId, input: [input] });
      return summary?.runId ?? "";
    },
    /** Waits for the end of such a run. */
    async result(runId: string): Promise<ItemResult> {
      await channel.unary(RunsService.GetRun, { runId, wait: true });
      return (await channel.unary(RunsService.GetRunItems, { runId })).results[0] as ItemResult;
    },
    async kill() {
      server.kill("SIGKILL");
      await server.ended;
    },
  };
}
