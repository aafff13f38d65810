// Python packages in an environment of their own, apart from the system's.
import { join } from "node:path";
import { type CachedPeer, execute } from "./cache.ts";

/** An environment with these requirements; its Python is `bin/python` in the folder. */
export function pythonPeer(folder: string, requirements: readonly string[]): CachedPeer {
  return { folder, tools: ["venv"], fetch: (path) => installWheels(path, requirements) };
}

async function installWheels(folder: string, requirements: readonly string[]): Promise<void> {
  await execute("python3", ["-m", "venv", folder]);
  const python = join(folder, "bin", "python");
  await execute(python, ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", ...requirements]);
}
