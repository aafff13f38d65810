import { expect, it } from "vitest";
import type { Definition } from "./dialect.ts";
import type { Plan } from "./plan.ts";
import { DefinitionViews } from "./views.ts";

it("a view is made once for a definition, and the oldest is forgotten when there are many", () => {
  const made: string[] = [];
  const plan = {} as Plan;
  const views = new DefinitionViews(
    () => plan,
    ({ id }, planned) => {
      made.push(id);
      return { id, planned };
    },
  );
  const of = (id: string) => views.of({ id, source: "" } as Definition);
  expect(of("0")).toEqual({ id: "0", planned: plan });
  expect(of("0")).toBe(of("0"));
  expect(made).toEqual(["0"]);
  for (let at = 1; at <= 8_192; at++) of(String(at));
  of("1");
  expect(made).toHaveLength(8_193);
  of("0");
  expect(made).toHaveLength(8_194);
});
