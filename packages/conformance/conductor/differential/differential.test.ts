// Compares our responses to Conductor's clients with those of the real server.
import { differentialSuite } from "../../src/differential/suite.ts";
import { startOurServer } from "../../src/longshore.ts";
import { chapters } from "./chapters.ts";
import { differences } from "./differences.ts";
import { fixtureFile, recorded } from "./fixtures.ts";

differentialSuite({
  ...{ protocol: "conductor", chapters, differences, fixtureFile, recorded },
  // The server's HTTP tasks call the server itself.
  start: (stage) => startOurServer(stage, { env: { CONDUCTOR_HTTP_TARGETS: "127.0.0.1" } }),
});
