// The protocols of the registry on an engine that a test has opened, without a coordinator or plugins.

import { createLogger } from "../../src/core/logger.ts";
import { protocols } from "../../src/protocols/index.ts";
import type { OpenProtocol, PreparedProtocol } from "../../src/protocols/server-half.ts";
import type { Engine } from "../../src/server/engine.ts";
import { openProtocols, prepareProtocols } from "../../src/server/protocols.ts";

/** `instead` replaces the protocol of that name. */
export async function protocolsOn(
  engine: Engine,
  instead: Readonly<Record<string, PreparedProtocol>> = {},
): Promise<readonly OpenProtocol[]> {
  const logger = createLogger({ level: "silent", write: () => {}, clock: engine.clock });
  const others = protocols.filter(({ name }) => !Object.hasOwn(instead, name));
  const prepared = await prepareProtocols({ port: null }, logger, others);
  return (await openProtocols([...Object.values(instead), ...prepared], engine, logger)).list;
}
