// Compares our responses to Stepflow's clients with those of the real orchestrator.
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
