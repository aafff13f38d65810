// `npm start`: builds what is needed, then runs the sample (`longshore demo`) and passes every argument on.
import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { build } from "./build.mjs";

// A first build takes long enough to be taken for a program that hangs.
process.stdout.write("Building Longshore ...");
const sinceMs = Date.now();
if (!build()) process.exit(1);
process.stdout.write(` done in ${((Date.now() - sinceMs) / 1_000).toFixed(1)} s.\n`);

const command = fileURLToPath(new URL("../packages/longshore/dist/cli/main.js", import.meta.url));
const child = spawn(process.execPath, [command, "demo", ...process.argv.slice(2)], { stdio: "inherit" });

// The terminal sends Ctrl-C to the whole group, so the child hears it itself; this process only waits for the child to finish.
process.on("SIGINT", () => {});
process.on("SIGTERM", () => child.kill("SIGTERM"));
child.on("exit", (code, signal) => {
  process.exitCode = code ?? (signal === "SIGINT" ? 130 : 1);
});
