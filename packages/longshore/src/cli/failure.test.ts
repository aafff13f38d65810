import { CommanderError } from "commander";
import { expect, it } from "vitest";
import { LongshoreError } from "../core/errors.ts";
import { CommandFailure, exitCodeOf, wantsJson } from "./failure.ts";

function reported(error: unknown, json: boolean) {
  const lines: string[] = [];
  const code = exitCodeOf(error, (line) => lines.push(line), json);
  return { code, lines };
}

it("an error is a line for a person and a JSON object for a program", () => {
  const error = new CommandFailure("there is no run x.", undefined, { code: "LONGSHORE_NOT_FOUND" });
  expect(reported(error, false)).toEqual({ code: 2, lines: ["longshore: there is no run x."] });
  expect(reported(error, true)).toEqual({
    code: 2,
    lines: ['{"error":{"code":"LONGSHORE_NOT_FOUND","message":"there is no run x."}}'],
  });
  expect(reported(new CommandFailure("run x failed.", 1), true)).toEqual({ code: 1, lines: ['{"error":{"message":"run x failed."}}'] });
  expect(reported(new LongshoreError("LONGSHORE_LIMIT", "too many"), true).lines).toEqual([
    '{"error":{"code":"LONGSHORE_LIMIT","message":"too many"}}',
  ]);
});

it("a mistake in the arguments is also reported as JSON, and help is not an error", () => {
  const mistake = new CommanderError(1, "commander.unknownOption", "error: unknown option '--prot'");
  expect(reported(mistake, true)).toEqual({
    code: 2,
    lines: ['{"error":{"code":"LONGSHORE_BAD_INPUT","message":"unknown option \'--prot\'"}}'],
  });
  // Commander has already printed it.
  expect(reported(mistake, false)).toEqual({ code: 2, lines: [] });
  expect(reported(new CommanderError(0, "commander.helpDisplayed", "(outputHelp)"), true)).toEqual({ code: 0, lines: [] });
});

it("JSON output is requested by an option, not by an argument after the end of the options", () => {
  expect(wantsJson(["runs", "--json"])).toBe(true);
  expect(wantsJson(["runs", "--", "--json"])).toBe(false);
});
