import { simulationSuite } from "./simulation-suite.ts";

// The same promises when another server takes over while the old owner continues: nothing that the old owner then confirms may count.
simulationSuite(1, 100, { lives: true });
