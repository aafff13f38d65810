// Builds the published package. `tsc` is incremental, so a second build with nothing changed takes well under a second.
import { spawnSync } from "node:child_process";
import { chmodSync, existsSync } from "node:fs";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));

export function build() {
  const tsc = fileURLToPath(new URL("../node_modules/typescript/bin/tsc", import.meta.url));
  const result = spawnSync(process.execPath, [tsc, "-p", "packages/longshore/tsconfig.build.json"], { cwd: root, stdio: "inherit" });
  if (result.status !== 0) process.exit(result.status ?? 1);
  // The compiler writes plain files; the command must be executable when it is linked from the workspace.
  const command = fileURLToPath(new URL("../packages/longshore/dist/cli/main.js", import.meta.url));
  if (existsSync(command)) chmodSync(command, 0o755);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) build();
