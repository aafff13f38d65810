import { expect, it } from "vitest";
import { openParts } from "../../../test/support/parts.ts";
import { Families } from "./local-families.ts";
import type { Run } from "./run.ts";

const open = (rootId: string | null = "root") => ({ rootId, endedAt: null });
const ended = { rootId: "root", endedAt: 1 };

async function setup(max: number) {
  const parts = await openParts("a file");
  await parts.define("w", ["a"]);
  const families = new Families(parts.store, max);
  return { parts, families, admit: (rootId: string) => parts.commit.run((tx) => families.admit(tx, rootId)) };
}

it("has room again when a run of the family has ended, and counts the run again in its next life", async () => {
  const { families, admit } = await setup(2);
  await admit("root");
  families.changed(open(), undefined);
  families.changed(open(), undefined);
  families.changed(open(), open());
  await expect(admit("root")).rejects.toMatchObject({ code: "LONGSHORE_LIMIT" });
  families.changed(ended, open());
  families.changed(ended, ended);
  await admit("root");
  families.changed(open(), ended);
  await expect(admit("root")).rejects.toThrow("Run root has the maximum of 2 open runs");
});

it("counts each root separately, and no run without one", async () => {
  const { families, admit } = await setup(1);
  await admit("a");
  families.changed(open("a"), undefined);
  families.changed(open(null), undefined);
  await admit("b");
  await admit("other");
  await expect(admit("a")).rejects.toMatchObject({ code: "LONGSHORE_LIMIT" });
});

it("counts the open runs of a family in the file when it does not know the family yet", async () => {
  const { parts, admit } = await setup(2);
  const runs: Run[] = [];
  for (let at = 0; at < 3; at++) runs.push(await parts.start("w"));
  const [first, second, third] = runs.map(({ id }) => id);
  parts.db.exec(`UPDATE run SET root_id = 'root' WHERE id IN ('${first}', '${second}')`);
  await expect(admit("root")).rejects.toMatchObject({ code: "LONGSHORE_LIMIT" });
  parts.db.exec(`UPDATE run SET root_id = 'other' WHERE id = '${third}'`);
  await admit("other");
});
