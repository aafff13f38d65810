// Our answers to Stepflow's clients, held against the real orchestrator's.
import { differentialSuite } from "../../src/differential/suite.ts";
import { startOurServer } from "../../src/longshore.ts";
import { chapters } from "./chapters.ts";
import { config } from "./config.ts";
import { differences } from "./differences.ts";
import { fixtureFile } from "./fixtures.ts";
import { comparable, recorded } from "./mask.ts";

differentialSuite({
  ...{ protocol: "stepflow", chapters, differences, fixtureFile, recorded, comparable },
  start: (stage) => startOurServer(stage, { stepflow: config }),
});
