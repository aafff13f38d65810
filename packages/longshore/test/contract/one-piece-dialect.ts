// The dialect of workflows in code without its compiler in slices. A dialect of the tests that changes the plan is made from it: it has its
// own `compile`, and nothing else may compile its sources.

import type { Dialect } from "../../src/engine/run/dialect.ts";
import { codeDialect } from "../../src/protocols/longshore/dialect/dialect.ts";

const { compileInSlices: _, ...rest } = codeDialect;

export const onePieceDialect: Dialect = rest;
