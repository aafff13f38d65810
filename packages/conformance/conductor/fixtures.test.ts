// Sends the script of requests to the real server and compares its responses with the committed fixtures. The protocol's unit tests and the
// differential test read those fixtures, so this test keeps them correct. `npm run conformance -- conductor/fixtures -u` writes them again.
import { openFileStage } from "../src/stage.ts";
import { chapters } from "./differential/chapters.ts";
import { fixtureSuite } from "./differential/fixture-suite.ts";
import { startReferenceServer } from "./reference.ts";

/**
 * What the real server returns here changes from run to run. It checks a JOIN in the background: its status after a failure, and the output of a run that
 * has not ended. It loses some of the events for handlers. It counts an iteration of a loop a moment after its last task. These fixtures are one of its possible responses.
 */
const changing = new Set(["control-children", "event-handlers", "operator-nested-loops"]);

const stage = openFileStage();
fixtureSuite(chapters, changing, () => startReferenceServer(stage, { transactions: "deferred" }));
