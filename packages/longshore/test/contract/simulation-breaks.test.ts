import { simulationSuite } from "./simulation-suite.ts";

// Connections break before and after a commit has taken effect, loads fail in the middle, and readers interrupt.
simulationSuite(1, 100, { breaks: true });
