// `longshore config`: each setting of the server, its value, and where the value comes from.

import { Command } from "commander";
import { CommandFailure } from "./failure.ts";
import { withExamples, withJson } from "./options.ts";
import { printJson } from "./print-json.ts";
import { type Resolved, type ResolvedSettings, resolveSettings } from "./resolved-settings.ts";
import { withServerFlags } from "./server-flags.ts";
import { serverSettings } from "./server-settings.ts";
import type { ServerCommand, Setting } from "./setting.ts";
import { columnsOf, painter, table } from "./terminal.ts";

export function configCommand(): Command {
  const command = new Command("config")
    .description("show the settings of the server, and where each value comes from")
    .argument("[command]", "start or dev, for which defaults differ", "start")
    .action(config);
  withJson(withServerFlags(command));
  return withExamples(
    command,
    [
      ["longshore config", "what `longshore start` would use in this folder"],
      ["longshore config dev --port 0", "what `longshore dev --port 0` would use"],
      ["longshore config --config ops/longshore.yaml --json", "with another file; for programs"],
    ],
    "The command line overrides the environment, which overrides the file, which overrides defaults. Secrets are not shown.",
  );
}

async function config(target: string, { json }: { json?: boolean }, command: Command): Promise<void> {
  if (!isServerCommand(target)) throw new CommandFailure(`there are no settings of ${target}, expected start or dev.`);
  const settings = await resolveSettings(command, target);
  if (json) printJson({ command: target, file: settings.file ?? null, settings: rowsOf(settings, target).map(jsonOf) }, 2);
  else print(settings, target);
}

function isServerCommand(text: string): text is ServerCommand {
  return text === "start" || text === "dev";
}

interface Row {
  readonly setting: Setting;
  /** Absent when the setting has no value. */
  readonly resolved?: Resolved;
}

function rowsOf({ list }: ResolvedSettings, target: ServerCommand): Row[] {
  return serverSettings
    .filter(({ only }) => only === undefined || only === target)
    .map((setting) => {
      const resolved = list.find((one) => one.setting === setting);
      return resolved === undefined ? { setting } : { setting, resolved };
    });
}

/** Other programs read this: do not change its fields. */
function jsonOf({ setting: { key, flag, variable }, resolved }: Row): Record<string, unknown> {
  const value = resolved === undefined ? null : (resolved.setting.shown?.(resolved.value) ?? resolved.value);
  return { key, flag: flag.split(" ")[0], variable, value, source: resolved?.source ?? null, place: resolved?.place || null };
}

function print(settings: ResolvedSettings, target: ServerCommand): void {
  const paint = painter(process.stdout);
  const rows = rowsOf(settings, target).map(({ setting, resolved }) => {
    const cells = [setting.key, resolved === undefined ? "" : shownValue(resolved), resolved === undefined ? "" : origin(resolved)];
    return resolved === undefined || resolved.source === "default" ? cells.map((cell) => paint("dim", cell)) : cells;
  });
  const file = settings.file === undefined ? "There is no configuration file here." : `The configuration file is ${settings.file}.`;
  process.stdout.write(`${file}\n\n${table(["SETTING", "VALUE", "FROM"], rows, paint, columnsOf(process.stdout)).join("\n")}\n`);
}

function shownValue({ setting, value }: Resolved): string {
  if (setting.shown !== undefined) return setting.shown(value);
  return Array.isArray(value) ? value.join(", ") : String(value);
}

function origin({ source, place }: Resolved): string {
  return place === "" ? source : place;
}
