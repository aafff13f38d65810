// More seeds of the simulation than the tests have time for: `npm run faults -- sweep --seeds 10000`.
import { functionsSuite } from "../contract/simulation-functions-suite.ts";
import { simulationSuite } from "../contract/simulation-suite.ts";

/** The tests use the seeds below this number. */
const PLAYED = 2_000;
const SEEDS_DEFAULT = 1_000;

const seeds = Number(process.env.LONGSHORE_SIM_SEEDS ?? SEEDS_DEFAULT);
simulationSuite(PLAYED + 1, PLAYED + seeds);
// These seeds take ten times as long.
const slow = Math.ceil(seeds / 10);
simulationSuite(PLAYED + 1, PLAYED + slow, { breaks: true });
simulationSuite(PLAYED + 1, PLAYED + slow, { lives: true });
functionsSuite(PLAYED + 1, PLAYED + slow, PLAYED + Math.ceil(slow / 10));
