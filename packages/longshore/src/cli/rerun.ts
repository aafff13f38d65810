// `longshore rerun`: a new run with the input of an old one.

import { Command } from "commander";
import { withExamples } from "./options.ts";
import { withOrder } from "./order-run.ts";

export function rerunCommand(): Command {
  const command = new Command("rerun")
    .description("start a new run of the same version with the same input")
    .argument("<run>", "the id of the old run, or its beginning");
  withOrder(command, { verb: "rerun", recorded: "run-started", line: ({ id }) => id });
  return withExamples(command, [["longshore rerun 01KA3F7Q", "prints the new run's id"]]);
}
