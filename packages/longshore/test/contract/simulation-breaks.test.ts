import { simulationSuite } from "./simulation-suite.ts";

// Connections break before and after a commit took effect, loads fail in the middle, and readers come between.
simulationSuite(1, 100, { breaks: true });
