// Python packages in a virtual environment, separate from those of the system.
import { join } from "node:path";
import { type CachedPeer, execute } from "./cache.ts";

/** A virtual environment with these requirements. Its Python is `bin/python` in the folder. */
export function pythonPeer(folder: string, requirements: readonly string[]): CachedPeer {
  return { folder, tools: ["venv"], fetch: (path) => installWheels(path, requirements) };
}

async function installWheels(folder: string, requirements: readonly string[]): Promise<void> {
  await execute("python3", ["-m", "venv", folder]);
  const python = join(folder, "bin", "python");
  await execute(python, ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", ...requirements]);
}
