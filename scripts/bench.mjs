// npm run bench -- NAME [--json] [--rounds N] [--quick]: builds the package and the benchmarks, and measures what was built.
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { build } from "./build.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));

function run(args) {
  const result = spawnSync(process.execPath, args, { cwd: root, stdio: "inherit" });
  if (result.error) throw result.error;
  if (result.status !== 0) process.exit(result.status ?? 1);
}

build();
run(["node_modules/typescript/bin/tsc", "-p", "bench/tsconfig.json"]);
run(["bench/dist/main.js", ...process.argv.slice(2)]);
