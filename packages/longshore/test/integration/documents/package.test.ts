// Compares the README of the published package with its entry points.

import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { readDocument } from "../../support/markdown.ts";

it("every entry point of the package is in its README, and no other", () => {
  const { exports } = JSON.parse(readFileSync(new URL("../../../package.json", import.meta.url), "utf8")) as { exports: object };
  const entries = Object.keys(exports).filter((entry) => entry !== "./package.json");
  const shown = [...readDocument("packages/longshore/README.md").matchAll(/^\| `(longshore[^`]*)`/gm)].map(([, name]) => name);
  expect(shown.sort()).toEqual(entries.map((entry) => entry.replace(/^\./, "longshore")).sort());
});
