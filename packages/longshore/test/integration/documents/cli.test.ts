// Compares docs/reference/cli.md with the program in both directions: commands with their arguments, options with their defaults.

import type { Command, Option } from "commander";
import { describe, expect, it } from "vitest";
import { createProgram } from "../../../src/cli/program.ts";
import { readDocument, type Section, section, sectionsOf, unquoted } from "../../support/markdown.ts";

const text = readDocument("docs/reference/cli.md");
const commands = withThoseBelow(createProgram().commands);
const sections = sectionsOf(text).filter(({ title }) => title.startsWith("longshore "));
const groups = [section(text, "Options of clients"), section(text, "Options of the server")];

describe("docs/reference/cli.md", () => {
  it("has a section for every command, and no other", () => {
    expect(sections.map(({ title }) => title).sort()).toEqual(commands.map(usage).sort());
  });

  it.each(sections.map((one) => [one.title, one] as const))("lists the options of `%s` with their defaults", (title, documented) => {
    const command = commands.find((one) => usage(one) === title)!;
    expect(documentedOptions(documented)).toEqual(programOptions(command));
  });

  it("lists the environment variables that set options", () => {
    const variables = new Set(commands.flatMap(({ options }) => options.flatMap(({ envVar }) => envVar ?? [])));
    expect([...variables].filter((name) => !text.includes(`\`${name}\``))).toEqual([]);
  });
});

function withThoseBelow(commands: readonly Command[]): Command[] {
  return commands.flatMap((command) => [command, ...withThoseBelow(command.commands)]);
}

function pathOf(command: Command): string {
  return command.parent === null ? command.name() : `${pathOf(command.parent)} ${command.name()}`;
}

function usage(command: Command): string {
  const names = command.registeredArguments.map((one) => {
    const name = `${one.name()}${one.variadic ? "..." : ""}`;
    return one.required ? `<${name}>` : `[${name}]`;
  });
  return [pathOf(command), ...names].join(" ");
}

function programOptions({ options }: Command): Record<string, string> {
  return Object.fromEntries(options.filter(({ hidden }) => !hidden).map((option) => [option.flags, defaultOf(option)]));
}

function defaultOf({ defaultValue }: Option): string {
  return defaultValue === undefined ? "" : String(defaultValue);
}

/** The section's own table, and the tables of the groups that it links to. */
function documentedOptions(documented: Section): Record<string, string> {
  const shared = groups.filter(({ title }) => documented.text.includes(`(#${title.toLowerCase().replaceAll(" ", "-")})`));
  const rows = [documented, ...shared].flatMap((one) => one.rows);
  return Object.fromEntries(rows.map(([flags = "", , value = ""]) => [unquoted(flags), unquoted(value)]));
}
