// `longshore retry`: continues the same run from where it failed.

import { Command } from "commander";
import { withExamples } from "./options.ts";
import { withOrder } from "./order-run.ts";

export function retryCommand(): Command {
  const command = new Command("retry")
    .description("repeat the failed steps of a run; steps that succeeded keep their results")
    .argument("<run>", "its id, or the beginning of it");
  withOrder(command, { verb: "retry", recorded: "run-ordered", line: ({ id, state }) => `${id} ${state}` });
  return withExamples(command, [
    ["longshore retry 01KA3F7Q --follow", "continues after the steps that succeeded"],
    ["longshore rerun 01KA3F7Q", "starts a new run from the beginning"],
  ]);
}
