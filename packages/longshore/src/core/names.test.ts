import { expect, it } from "vitest";
import { checkName } from "./names.ts";

it("accepts names in every script, also with complete surrogate pairs", () => {
  for (const name of ["", "greet", "grüße", "挨拶", "\u{1f6a2}"]) expect(() => checkName(name, "name")).not.toThrow();
});

it.each([
  ["half a pair at the end", "a\ud83d"],
  ["the other half", "\udea2a"],
  ["the halves in the wrong order", "\udea2\ud83d"],
  ["NUL", "a\u0000b"],
])("refuses %s, shows it and names the field", (_what, name) => {
  const detail = { field: "key", expected: "valid Unicode without the NUL character" };
  expect(() => checkName(name, "key")).toThrow(
    expect.objectContaining({
      code: "LONGSHORE_BAD_INPUT",
      detail,
      message: `key is ${JSON.stringify(name)}, expected ${detail.expected}.`,
    }),
  );
});
