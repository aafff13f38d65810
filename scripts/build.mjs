// Builds the published package. `tsc` is incremental, so a second build with nothing changed takes well under a second.
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { buildDashboard } from "./build-dashboard.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));
const packageFolder = join(root, "packages/longshore");

/** Answers whether it compiled without errors; the compiler writes its files either way. */
export function build() {
  removeOrphans();
  buildDashboard();
  const tsc = join(root, "node_modules/typescript/bin/tsc");
  const result = spawnSync(process.execPath, [tsc, "-p", join(packageFolder, "tsconfig.build.json")], { cwd: root, stdio: "inherit" });
  return result.status === 0;
}

/** Removes what an earlier build wrote for a source file that is gone, so that it is not packed. */
function removeOrphans() {
  const dist = join(packageFolder, "dist");
  if (!existsSync(dist)) return;
  for (const path of readdirSync(dist, { recursive: true, encoding: "utf8" })) {
    const built = /^(.*?)(?:\.d\.ts|\.js|\.js\.map)$/.exec(path);
    if (built !== null && !existsSync(join(packageFolder, "src", `${built[1]}.ts`))) rmSync(join(dist, path), { force: true });
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url) && !build()) process.exitCode = 1;
