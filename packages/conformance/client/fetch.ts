// Fetches Deno and Bun from npm, once, into the user's cache folder. npm has one package for each platform, and the program is in it.
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { type CachedPeer, execute, fetchedFolder, fetchIntoCache } from "../src/cache.ts";
import { PeerUnavailable } from "../src/tools.ts";

const versions = { deno: "2.9.6", bun: "1.4.4" } as const;
/** The folder into which npm installs the packages of a runtime, and the path of the program within one of them. */
const places = { deno: { scope: "@deno", program: "deno" }, bun: { scope: "@oven", program: join("bin", "bun") } } as const;

export type Runtime = keyof typeof versions;

function peerOf(runtime: Runtime): CachedPeer {
  const wanted = `${runtime}@${versions[runtime]}`;
  const install = (folder: string) =>
    execute("npm", ["install", "--prefix", folder, "--ignore-scripts", "--no-save", "--no-audit", "--no-fund", wanted]);
  return { folder: `${runtime}-${versions[runtime]}`, tools: [], fetch: install };
}

/** Fetches what is not in the cache yet. */
export async function fetchRuntimes(say: (line: string) => void): Promise<void> {
  for (const runtime of ["deno", "bun"] as const) await fetchIntoCache(peerOf(runtime), say);
}

/** The path of the program. */
export function runtimeProgram(runtime: Runtime): string {
  const { scope, program } = places[runtime];
  const folder = join(fetchedFolder(peerOf(runtime)), "node_modules", scope);
  const programs = readdirSync(folder).map((name) => join(folder, name, program));
  const found = programs.find((path) => existsSync(path));
  if (found === undefined) throw new PeerUnavailable(`MISSING PEER: no package of ${runtime} for this platform is in ${folder}.`);
  return found;
}
