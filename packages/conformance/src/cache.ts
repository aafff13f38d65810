// One folder in the user's cache for each peer. A folder counts only when its fetch was completed.
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { peersFolder } from "./peers.ts";
import { PeerUnavailable, requireTool, type ToolName } from "./tools.ts";

export interface CachedPeer {
  /** The folder below the cache. Each version has its own folder. */
  readonly folder: string;
  readonly tools: readonly ToolName[];
  fetch(folder: string): Promise<void>;
}

/** This file is written last. When a fetch was interrupted, the file is missing, and the fetch begins again. */
const COMPLETE = ".complete";

/** Fetches it, unless the cache has it. */
export async function fetchIntoCache({ folder, tools, fetch }: CachedPeer, say: (line: string) => void): Promise<void> {
  const path = join(peersFolder(), folder);
  if (existsSync(join(path, COMPLETE))) return;
  for (const tool of tools) requireTool(tool);
  const startedAt = Date.now();
  say(`fetching ${folder}`);
  rmSync(path, { recursive: true, force: true });
  mkdirSync(path, { recursive: true });
  await fetch(path);
  writeFileSync(join(path, COMPLETE), "");
  say(`fetched ${folder} in ${Math.round((Date.now() - startedAt) / 1000)} s`);
}

/** Throws `PeerUnavailable` when it has not been fetched: nothing is fetched from inside a test. */
export function fetchedFolder({ folder }: CachedPeer): string {
  const path = join(peersFolder(), folder);
  if (existsSync(join(path, COMPLETE))) return path;
  throw new PeerUnavailable(`MISSING PEER: ${path} is not there.\n  to get it: npm run conformance (it fetches what is missing first)`);
}

/** An error shows only the end of the output of a failed command, because the reason is usually there. */
const OUTPUT_CHARS_MAX = 4_000;

export async function execute(command: string, args: readonly string[]): Promise<void> {
  const child = spawn(command, args, { stdio: ["ignore", "pipe", "pipe"] });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (text: string) => {
      output = (output + text).slice(-OUTPUT_CHARS_MAX);
    });
  }
  const how = await new Promise<string | number | null>((resolve) => {
    child.once("error", (error) => resolve(error.message));
    child.once("close", resolve);
  });
  if (how !== 0) throw new PeerUnavailable(`${command} ${args.join(" ")} ended with ${how}:\n${output}`);
}
