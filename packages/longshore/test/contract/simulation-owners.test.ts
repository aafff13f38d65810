import { simulationSuite } from "./simulation-suite.ts";

// The same, and another server takes over while the old owner goes on: nothing that it says from then on may count.
simulationSuite(1, 100, { lives: true });
