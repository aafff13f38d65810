import { expect, it } from "vitest";
import { Families } from "./families.ts";

const open = (id: string, rootId: string | null = "root") => ({ id, rootId, endedAt: null });

it("has room again when a run of the family has ended, and counts each run once", () => {
  const families = new Families(2);
  for (const id of ["a", "b", "b"]) families.changed(open(id));
  expect(() => families.admit("root")).toThrow(expect.objectContaining({ code: "LONGSHORE_LIMIT" }));
  families.changed({ ...open("a"), endedAt: 1 });
  families.changed({ ...open("a"), endedAt: 1 });
  expect(() => families.admit("root")).not.toThrow();
  families.changed(open("a"));
  expect(() => families.admit("root")).toThrow("Run root has the maximum of 2 open runs");
});

it("counts each root separately, and no run without one", () => {
  const families = new Families(1);
  families.changed(open("a"));
  families.changed(open("b", null));
  expect(() => families.admit("b")).not.toThrow();
  expect(() => families.admit("other")).not.toThrow();
});
