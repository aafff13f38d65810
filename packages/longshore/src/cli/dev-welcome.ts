// What `longshore dev` prints when it serves: its address, its data, and the next commands. About ten lines, so that all of them stay
// visible.

import type { Server } from "../server/index.ts";
import { dashboardAddress } from "./open.ts";
import { onOption } from "./options.ts";
import type { Paint } from "./terminal.ts";

export interface WelcomeOptions {
  readonly server: Pick<Server, "url" | "workflows">;
  /** Where the data is, such as `in .longshore`. */
  readonly data: string;
  /** The folder of `--workflows`. */
  readonly folder: string | undefined;
  /** False with `--no-ui`. */
  readonly hasPages: boolean;
  readonly paint: Paint;
}

export function opening({ server, data, folder, hasPages, paint }: WelcomeOptions): string[] {
  const names = server.workflows.defined.map(({ definition }) => definition.name);
  return [
    `${paint("bold", "Longshore")} serves on ${paint("cyan", server.url ?? "")}, with its data ${data}.`,
    ...(hasPages ? [`Dashboard: ${paint("cyan", dashboardAddress(server.url ?? ""))}`] : []),
    ...(names.length === 0 ? [] : [`Defined from ${folder}: ${names.join(", ")}.`]),
  ];
}

/** The commands for another terminal. `files` are those of the app, `workflow` is one that can be started. */
export function nextSteps({ server, paint }: WelcomeOptions, files: readonly string[], workflow: string | undefined): string[] {
  const on = onOption(server.url ?? "");
  const run: Hint[] =
    workflow === undefined ? [] : [[`npx longshore run ${workflow} --follow${on}`, "start a run; --input '{...}' is its input"]];
  const steps: readonly Hint[] = [
    ...(files.length === 0 ? beginnings : []),
    ...run,
    [`npx longshore runs${on}`, "the runs; with an id, one with its steps"],
    [`npx longshore snippets${on}`, "workers to copy, also for other SDKs and languages"],
  ];
  const width = Math.max(...steps.map(([command]) => command.length));
  return [
    "",
    ...steps.map(([command, meaning]) => `  ${paint("cyan", command.padEnd(width))}  ${paint("dim", meaning)}`),
    "",
    paint("dim", "Serving until Ctrl-C. Tasks that wait and runs that fail are listed below, with the reason."),
  ];
}

type Hint = readonly [command: string, meaning: string];

const beginnings: readonly Hint[] = [["npx longshore dev app.ts", "serve with the tasks and workflows of a file"]];
