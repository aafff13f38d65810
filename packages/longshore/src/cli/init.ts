// `longshore init`: writes a small project that runs. Its files are in project-files.ts.

import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { basename, join, relative, resolve } from "node:path";
import { Command } from "commander";
import { packageVersion } from "../core/version.ts";
import { CommandFailure } from "./failure.ts";
import { withExamples } from "./options.ts";
import { projectFiles } from "./project-files.ts";

export function initCommand(): Command {
  const command = new Command("init")
    .description("write a project of five files that runs: a durable workflow, its tasks and a test")
    .argument("[folder]", "where to write it; created if it does not exist", ".")
    .action(init);
  return withExamples(command, [
    ["longshore init my-app", "in a new folder"],
    ["longshore init", "in the current folder; no file is replaced"],
  ]);
}

function init(folder: string): void {
  const target = resolve(folder);
  const files = Object.entries(projectFiles(packageName(target), packageVersion()));
  const taken = files.map(([name]) => name).filter((name) => existsSync(join(target, name)));
  if (taken.length > 0)
    throw new CommandFailure(`${folder} already has ${taken.join(", ")}, and init replaces no file. Name another folder.`);
  try {
    mkdirSync(target, { recursive: true });
    // `wx` fails for a file that another program has written since the check above.
    for (const [name, text] of files) writeFileSync(join(target, name), text, { flag: "wx" });
  } catch (cause) {
    throw new CommandFailure(`the project cannot be written: ${(cause as Error).message}.`, undefined, { cause });
  }
  const place = relative(process.cwd(), target);
  const enter = place === "" ? "" : `cd ${/^[\w./-]+$/.test(place) ? place : JSON.stringify(place)} && `;
  const names = files.map(([name]) => name).join(", ");
  process.stdout.write(`Wrote ${names}. Next:\n\n  ${enter}npm install && npm test\n  npm run dev\n`);
}

/** A name that npm accepts, made from the name of the folder. npm installs no package into a project of the same name. */
function packageName(folder: string): string {
  const name = basename(folder)
    .toLowerCase()
    .replace(/[^a-z0-9-]+/g, "-")
    .replace(/^-+|-+$/g, "");
  if (name === "") return "app";
  return name === "longshore" ? "longshore-app" : name;
}
