// `longshore retry`: continues the same run from where it failed.

import { Command } from "commander";
import { withExamples } from "./options.ts";
import { withOrder } from "./order-run.ts";

export function retryCommand(): Command {
  const command = new Command("retry")
    .description("repeat the failed steps of a run; steps that succeeded keep their results")
    .argument("<run>", "its id");
  withOrder(command, { verb: "retry", recorded: "run-ordered", line: ({ id, state }) => `${id} ${state}` });
  return withExamples(command, [
    ["longshore retry 0198c0de --follow", "continues after the steps that succeeded"],
    ["longshore rerun 0198c0de", "starts a new run from the beginning"],
  ]);
}
