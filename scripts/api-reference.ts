// Writes docs/api from the doc comments of everything that the package exports. With `--check` it writes nothing and fails when an
// exported name has no comment or a page differs from the one in the repository. The package must have been built.
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { readEntries } from "./api/entries.ts";
import { findUndocumented, pagesOf } from "./api/page.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
const folder = join(root, "docs/api");

function differences(pages: ReadonlyMap<string, string>): string[] {
  mkdirSync(folder, { recursive: true });
  const there = new Map(readdirSync(folder).map((file) => [file, readFileSync(join(folder, file), "utf8")]));
  const files = new Set([...pages.keys(), ...there.keys()]);
  return [...files].filter((file) => pages.get(file) !== there.get(file)).sort();
}

const entries = readEntries(join(root, "packages/longshore"));
const undocumented = findUndocumented(entries);
const pages = pagesOf(entries);
const changed = differences(pages);

for (const line of undocumented) console.error(line);
if (undocumented.length > 0) process.exitCode = 1;
if (process.argv.includes("--check")) {
  for (const file of changed) console.error(`docs/api/${file} does not match the source; run \`npm run api\` and commit it`);
  if (changed.length > 0) process.exitCode = 1;
} else {
  for (const file of changed) {
    const page = pages.get(file);
    if (page === undefined) rmSync(join(folder, file));
    else writeFileSync(join(folder, file), page);
  }
  console.log(`${entries.length} entries, ${changed.length} of ${pages.size} pages changed`);
}
