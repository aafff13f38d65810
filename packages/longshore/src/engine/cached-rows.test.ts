import { expect, it } from "vitest";
import { openParts } from "../../test/support/parts.ts";

it("a hold is renewed in memory, and by a commit where another server may have taken over the data", async () => {
  const parts = await openParts("a file");
  await parts.define("w", ["a"]);
  await parts.start("w");
  const { id, grant, holder } = await parts.claim();
  const hold = { taskId: id, grant, holder: holder as string };
  const commitsOf = async () => {
    const before = parts.commit.commits;
    expect((await parts.board.extend(hold)).verdict).toBe("ok");
    return parts.commit.commits - before;
  };
  expect(await commitsOf()).toBe(0);
  parts.store.isOwned = () => false;
  expect(await commitsOf()).toBe(1);
});
