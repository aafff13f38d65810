// Tests that start the command or pack the tarball need a build; vitest calls this once before them.
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";

export default function setup(): void {
  // Set where one build serves several runs of the test runner at the same time.
  if (process.env.LONGSHORE_BUILT === "1") return;
  const built = spawnSync(process.execPath, [fileURLToPath(new URL("./build.mjs", import.meta.url))], { encoding: "utf8" });
  // The compiler writes its files in spite of type errors, so the tests still say what works; `npm run check` refuses the errors.
  if (built.status !== 0) process.stderr.write(`the build has errors:\n${built.stdout}${built.stderr}`);
}
