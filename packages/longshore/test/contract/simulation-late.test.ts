import { simulationSuite } from "./simulation-suite.ts";

// The same promises when each read and commit takes turns of the event loop, and calls arrive in the middle of commits.
simulationSuite(1, 300, { late: true });
