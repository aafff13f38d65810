// Workflows in code that are tied to their children as in Conductor. The failure of a step ends its run at once with all open work. A
// parent waits again for a child that begins another life.

import type { Dialect } from "../../src/engine/run/dialect.ts";
import { onePieceDialect } from "./one-piece-dialect.ts";

const name = "tied";

export const tiedDialect: Dialect = {
  ...onePieceDialect,
  name,
  compile(source) {
    const plan = onePieceDialect.compile(source);
    const nodes = plan.nodes.map((node) => ({ ...node, onFailure: "end" as const }));
    return { ...plan, dialect: name, nodes, reopensParent: true, keepsCounting: true };
  },
};
