import { simulationSuite } from "./simulation-suite.ts";

// Two files, so that two processes share the work.
simulationSuite(1, 1_000);
