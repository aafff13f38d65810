// `longshore open`: opens the dashboard of a server in the browser of this computer.

import { spawn } from "node:child_process";
import { Command } from "commander";
import { CommandFailure } from "./failure.ts";
import { type ConnectionOptions, withConnection, withExamples } from "./options.ts";

export function openCommand(): Command {
  const command = new Command("open")
    .description("open the dashboard of a server in the browser")
    .argument("[run]", "the id of a run to show")
    .option("--print", "only print the address");
  withConnection(command).action(open);
  return withExamples(
    command,
    [
      ["longshore open", "the server at port 4500 of this machine"],
      ["longshore open 01KA3F7QZ1 --on http://10.0.0.5:4500", "one run on another server"],
    ],
    "If the server requires a token, the page asks for it, because other users of the machine can read the arguments of programs.",
  );
}

async function open(run: string | undefined, { on, print }: ConnectionOptions & { print?: boolean }): Promise<void> {
  const address = dashboardAddress(on, run);
  process.stdout.write(`${address}\n`);
  if (print) return;
  if (!(await opened(address))) throw new CommandFailure("no browser could be started. Open the address above in one.");
}

/** The address of the dashboard of a server, or of one of its runs. */
export function dashboardAddress(on: string, run?: string): string {
  return `${on.replace(/\/$/, "")}/ui${run === undefined ? "" : `/runs/${encodeURIComponent(run)}`}`;
}

const openers: Readonly<Partial<Record<NodeJS.Platform, readonly string[]>>> = {
  darwin: ["open"],
  // `start` uses the first quoted argument as a window title.
  win32: ["cmd", "/c", "start", '""'],
};

/** False when the program that opens addresses could not be started. */
function opened(address: string): Promise<boolean> {
  const [program = "xdg-open", ...args] = openers[process.platform] ?? ["xdg-open"];
  return new Promise((resolve) => {
    const child = spawn(program, [...args, address], { stdio: "ignore", detached: true });
    child.once("error", () => resolve(false));
    child.once("spawn", () => {
      child.unref();
      resolve(true);
    });
  });
}
