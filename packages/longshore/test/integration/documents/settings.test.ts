// Compares the server's settings on two pages with the table of the program, in both directions.

import { expect, it } from "vitest";
import { serverSettings } from "../../../src/cli/server-settings.ts";
import { readDocument, section, unquoted } from "../../support/markdown.ts";

const flagOf = (flag: string) => flag.split(" ")[0] as string;

it("configuration.md has the flag, variable, key and default of every setting", () => {
  const { rows } = section(readDocument("docs/reference/configuration.md"), "The configuration file");
  const expected = serverSettings.map(({ flag, variable, key, default: value, defaults }) => [
    ...[flagOf(flag), variable, key],
    defaults === undefined ? String(value ?? "") : `\`${defaults.start}\`; \`${defaults.dev}\` in dev`,
  ]);
  expect(rows.map((row) => row.map((cell) => (/^`[^`]*`$/.test(cell) ? unquoted(cell) : cell)))).toEqual(expected);
});

it("environment.md has the variable of every setting", () => {
  const text = readDocument("docs/reference/environment.md");
  const rows = [...text.matchAll(/^\| `(LONGSHORE_\w+)` +\| `(--[\w-]+)` +\|$/gm)].map(([, variable, flag]) => [flag, variable]);
  expect(rows).toEqual(serverSettings.map(({ flag, variable }) => [flagOf(flag), variable]));
});
