// `npm run faults`: the long fault runs. `npm run faults -- sweep` runs only the crash-point sweep; with `--seeds 10000` it then runs that
// many seeds of the simulation. Other arguments are passed to vitest, such as the path of one test.
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { planFaults } from "./faults-plan.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
const plan = planFaults(process.argv.slice(2));
if ("wrong" in plan) {
  process.stderr.write(`${plan.wrong}\n`);
  process.exit(2);
}
const parameters = [`${root}/node_modules/vitest/vitest.mjs`, "run", "--project", "faults", ...plan.parameters];
const { status } = spawnSync(process.execPath, parameters, { cwd: root, env: { ...process.env, ...plan.env }, stdio: "inherit" });
process.exit(status ?? 1);
