// Compares the list of attacks with the existing files.

import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";

const folder = fileURLToPath(new URL("../../attacks/", import.meta.url));

it("test/attacks/README.md lists every attack, and no other", () => {
  const listed = readFileSync(`${folder}README.md`, "utf8").matchAll(/`([a-z\d-]+(?:\.faults)?\.test\.ts)`/g);
  const there = readdirSync(folder).filter((name) => name.endsWith(".test.ts"));
  expect([...new Set([...listed].map(([, name]) => name))].sort()).toEqual(there.sort());
});
