import { simulationSuite } from "./simulation-suite.ts";

simulationSuite(1_001, 2_000);
