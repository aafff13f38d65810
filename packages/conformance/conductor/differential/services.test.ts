// Compares our responses with those of the real server with all services on.
import { differentialSuite } from "../../src/differential/suite.ts";
import { startOurServer } from "../../src/longshore.ts";
import { FILES_URL } from "../reference.ts";
import { fixtureFile, recorded } from "./fixtures.ts";
import { serviceChapters, serviceVariables } from "./services/chapters.ts";
import { serviceDifferences } from "./services/differences.ts";

differentialSuite({
  ...{ protocol: "conductor", chapters: serviceChapters, differences: serviceDifferences, fixtureFile, recorded },
  start: (stage) => startOurServer(stage, { env: { ...serviceVariables, CONDUCTOR_FILESTORAGE_CONDUCTOR_BASEURL: FILES_URL } }),
});
