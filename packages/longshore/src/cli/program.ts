// The list of commands. Each is in a separate file and loads its modules only when it runs: help is fast, and a worker loads no server.

import { Command } from "commander";
import { packageVersion } from "../core/version.ts";
import { backupCommand } from "./backup.ts";
import { cancelCommand } from "./cancel.ts";
import { configCommand } from "./config.ts";
import { defineCommand } from "./define.ts";
import { definitionsCommand } from "./definitions.ts";
import { demoCommand } from "./demo.ts";
import { devCommand } from "./dev.ts";
import { doctorCommand } from "./doctor.ts";
import { emitCommand } from "./emit.ts";
import { historyCommand } from "./history.ts";
import { initCommand } from "./init.ts";
import { logsCommand } from "./logs.ts";
import { migrateCommand } from "./migrate.ts";
import { nodesCommand } from "./nodes.ts";
import { openCommand } from "./open.ts";
import { queuesCommand } from "./queues.ts";
import { replayCommand } from "./replay.ts";
import { rerunCommand } from "./rerun.ts";
import { retryCommand } from "./retry.ts";
import { runCommand } from "./run.ts";
import { runsCommand } from "./runs.ts";
import { schedulesCommand } from "./schedules.ts";
import { schemaCommand } from "./schema.ts";
import { signalCommand } from "./signal.ts";
import { snippetsCommand } from "./snippets.ts";
import { startCommand } from "./start.ts";
import { verifyCommand } from "./verify.ts";
import { workCommand } from "./work.ts";
import { workersCommand } from "./workers.ts";

const groups: readonly { readonly heading: string; readonly commands: readonly (() => Command)[] }[] = [
  {
    heading: "Serve and work:",
    commands: [
      initCommand,
      devCommand,
      startCommand,
      workCommand,
      demoCommand,
      backupCommand,
      migrateCommand,
      doctorCommand,
      verifyCommand,
    ],
  },
  {
    heading: "Runs:",
    commands: [
      runCommand,
      runsCommand,
      logsCommand,
      signalCommand,
      emitCommand,
      cancelCommand,
      retryCommand,
      rerunCommand,
      historyCommand,
      replayCommand,
    ],
  },
  {
    heading: "Look around:",
    commands: [
      openCommand,
      configCommand,
      definitionsCommand,
      defineCommand,
      schedulesCommand,
      schemaCommand,
      snippetsCommand,
      workersCommand,
      queuesCommand,
      nodesCommand,
    ],
  },
];

const examples = `
Examples:
  $ longshore dev app.ts                             a server on this machine with the tasks and workflows of a file
  $ longshore work tasks.mjs                         a worker for the tasks that tasks.mjs exports
  $ longshore run greeting --input '{"name":"Ada"}' --follow

Exit codes:
  0  it worked
  1  the run did not succeed, or doctor or verify found something wrong
  2  wrong arguments, or the server could not be reached or refused
  130, 143  Ctrl-C or SIGTERM ended --follow; the run continues

Settings: LONGSHORE_URL is the default of --on, LONGSHORE_TOKEN of --token. NO_COLOR switches colours off. \`longshore config\` shows the
settings of a server: from its options, from LONGSHORE_ variables, and from longshore.config.ts, .mjs, .json or .yaml.`;

/** With `json`, commander prints no mistakes in the arguments: the caller reports them as JSON. */
export function createProgram({ json = false } = {}): Command {
  const program = new Command("longshore")
    .description("Durable tasks and workflows: one server for every worker, one worker for every server.")
    .version(packageVersion(), "-V, --version", "print the version")
    // An option after the name of a command belongs to that command, also when the command is a subcommand.
    .enablePositionalOptions()
    .helpCommand("help [command]", "print the help of a command")
    .addHelpText("after", examples);
  for (const { heading, commands } of groups) {
    program.commandsGroup(heading);
    for (const make of commands) program.addCommand(make());
  }
  // A process ends by itself when its work is over; `exitOverride` prevents commander from ending it in the middle of a write.
  const prepare = (command: Command, path: string) => {
    if (json) command.configureOutput({ writeErr: () => {} });
    command.exitOverride().helpOption("-h, --help", "print help").showHelpAfterError(`Try \`${path} --help\`.`);
    for (const one of command.commands) prepare(one, `${path} ${one.name()}`);
  };
  prepare(program, "longshore");
  return program;
}
