// Prepares FlowKit's server half. The coordinator is loaded when workers can reach it: on a server with a port, or with the option
// `flowkit`.

import type { OpenProtocol, PreparedProtocol, Preparing, ProtocolEngine } from "../../server-half.ts";
import { flowkitDialect } from "../dialect/dialect.ts";
import type { Flowkit } from "./lead.ts";
import type { FlowkitOptions, FlowkitSide } from "./options.ts";

export async function prepare(given: FlowkitOptions | undefined, around: Preparing): Promise<PreparedProtocol<FlowkitSide>> {
  if (!around.listens && given === undefined) return withoutCoordinator;
  const options = given ?? {};
  const { openFlowkit, readFlowkitConfig } = await import("./lead.ts");
  const config = await readFlowkitConfig(options, around);
  return {
    dialects: [flowkitDialect({ limits: config.settings.limits, isSensitive: config.isSensitive })],
    open: async (deps) => opened(deps.engine, await openFlowkit(deps, config, options)),
  };
}

const withoutCoordinator: PreparedProtocol<FlowkitSide> = {
  dialects: [flowkitDialect()],
  open: async ({ engine }) => opened(engine, null),
};

function opened(engine: ProtocolEngine, flowkit: Flowkit | null): OpenProtocol<FlowkitSide> {
  return {
    handle: { flowkit },
    async serve({ metrics }) {
      const [{ flowkitRoutes }, { instrumentFlowkit }] = await Promise.all([import("./routes.ts"), import("./instruments.ts")]);
      const { coordinator, busElsewhere, topics } = flowkit ?? {};
      const { busLog, clock, board, runs, reader, parts, documents, plan } = engine;
      const batchesKept = (count: number) => coordinator?.batchesKept(count);
      const routes = flowkitRoutes(
        { busLog, clock, board, runs, reader, parts, documents, plan, busElsewhere, topics, batchesKept },
        coordinator?.tasks,
      );
      if (flowkit !== null) instrumentFlowkit(flowkit, metrics);
      return { routes, dismiss: () => routes.dismiss() };
    },
    close: async () => flowkit?.close(),
  };
}
