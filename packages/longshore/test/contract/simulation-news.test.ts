import { simulationSuite } from "./simulation-suite.ts";

// The same promises when runs often begin another life between their end and the messages about it.
simulationSuite(1, 200, { overtakes: true });
