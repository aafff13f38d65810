// Executes the code blocks of every Markdown file, so that no document can promise what does not work. Names of files may be given
// to run only those: `npx tsx scripts/docs-blocks.ts README.md`. The package must have been built.
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { runDocument } from "./docs/run.ts";

const repository = fileURLToPath(new URL("..", import.meta.url));
// docs/api shows declarations, which are compiled where they come from.
const all = execFileSync("git", ["ls-files", "-co", "--exclude-standard", "--", "*.md", ":!docs/api"], {
  cwd: repository,
  encoding: "utf8",
});
const wanted = process.argv.slice(2);
const documents = wanted.length > 0 ? wanted : all.split("\n").filter(Boolean);

// Ends through the exit hooks, which end the blocks that still run.
process.once("SIGINT", () => process.exit(130));
process.once("SIGTERM", () => process.exit(143));

let ran = 0;
let failed = 0;
for (const path of documents) {
  for (const result of await runDocument(readFileSync(join(repository, path), "utf8"), repository)) {
    if (result.state === "ran") ran += 1;
    if (result.state !== "failed") continue;
    failed += 1;
    console.error(`${path}:${result.line}: ${result.what} block failed: ${result.message}`);
  }
}
console.log(`${ran} blocks of ${documents.length} documents did what they say, ${failed} did not`);
if (failed > 0) process.exitCode = 1;
