// Retention of blobs: those that no open run or task names are removed.

import { randomBytes } from "node:crypto";
import { describe, expect, it } from "vitest";
import { places } from "../../../test/support/parts.ts";
import { dayMs, forever, newTask, setup } from "../../../test/support/retention.ts";

describe.each(places)("retention of blobs in %s", (place) => {
  it("unused blobs are removed, more than one batch of them", async () => {
    const { parts, blobs, prune, rows } = await setup(place);
    for (let n = 0; n < 120; n++) await blobs.put(randomBytes(8));
    parts.clock.jump(2 * dayMs);
    const fresh = await blobs.put(randomBytes(8));
    expect((await prune({ blobs: { ...forever, ageMs: dayMs } })).blobs).toBe(120);
    expect(rows()).toMatchObject({ blob: 1 });
    expect(await blobs.stat(fresh.hash)).toBeDefined();
  });

  it("blobs above the count are removed, those first that were used longest ago", async () => {
    const { parts, blobs, prune } = await setup(place);
    const stored: string[] = [];
    for (let n = 0; n < 5; n++) {
      stored.push((await blobs.put(randomBytes(8))).hash);
      parts.clock.jump(1_000);
    }
    expect((await prune({ blobs: { ...forever, count: 2 } })).blobs).toBe(0);
    parts.clock.jump(dayMs);
    expect((await prune({ blobs: { ...forever, count: 2 } })).blobs).toBe(3);
    const left = await Promise.all(stored.map((hash) => blobs.stat(hash)));
    expect(left.map((blob) => blob !== undefined)).toEqual([false, false, false, true, true]);
  });

  it("a blob that an open run or task refers to stays, and stays as long again after the last of them has ended", async () => {
    const { parts, blobs, prune } = await setup(place);
    const stored = await Promise.all(Array.from({ length: 7 }, () => blobs.put(randomBytes(8))));
    const [given, answered, defined, loose, ended, before, unused] = stored.map(({ hash }) => hash) as [string, ...string[]];
    await parts.define("w", ["a", "b", `c-${defined}`]);
    const run = await parts.start("w", { input: `{"archive":"sha256:${given}"}` });
    await parts.complete(await parts.claim(), `{"${answered}":1}`);
    await parts.board.post([newTask("loose", `["${loose}"]`), newTask("over", `["${ended}"]`)]);
    await parts.start("w", { input: `"${before}${before}"` });
    await parts.complete(await parts.claim("w1", "over"));
    parts.clock.jump(2 * dayMs);
    const policy = { blobs: { ...forever, ageMs: dayMs } };
    expect((await prune(policy)).blobs).toBe(3);
    const there = async () => (await Promise.all(stored.map(({ hash }) => blobs.stat(hash)))).map((blob) => blob !== undefined);
    expect(await there()).toEqual([true, true, true, true, false, false, false]);
    expect(unused).toBeDefined();
    await parts.runs.tell(run.id, { kind: "cancel" });
    parts.clock.jump(dayMs / 2);
    expect((await prune(policy)).blobs).toBe(0);
  });

  it("a blob that only a part of an open run or task names stays, at any place among many parts", async () => {
    const { parts, blobs, streams, prune, post } = await setup(place);
    const stored = await Promise.all(Array.from({ length: 5 }, () => blobs.put(randomBytes(8))));
    const [early, late, loose, over] = stored.map(({ hash }) => hash) as [string, string, string, string, string];
    const valued = (uid: string, hash: string) => ({ uid, value: JSON.stringify({ archive: `sha256:${hash}` }) });
    await parts.define("w", ["a", "b"]);
    await parts.start("w");
    const step = await parts.claim();
    const many = Array.from({ length: 450 }, (_, at) => ({ uid: `p${at}`, value: at % 2 === 0 ? "1" : JSON.stringify("x".repeat(5_000)) }));
    await streams.put({ taskId: step.id, grant: step.grant }, [valued("early", early), ...many, valued("late", late)]);
    // The step has ended; its run has not, and its next step may read what it put.
    await parts.complete(step);
    const alone = await post("alone");
    await streams.put({ taskId: alone.id, grant: alone.grant }, [valued("x", loose)]);
    const gone = await post("over");
    await streams.put({ taskId: gone.id, grant: gone.grant }, [valued("x", over)]);
    await parts.complete(gone);
    parts.clock.jump(2 * dayMs);
    expect((await prune({ blobs: { ...forever, ageMs: dayMs } })).blobs).toBe(2);
    const there = await Promise.all(stored.map(({ hash }) => blobs.stat(hash)));
    expect(there.map((blob) => blob !== undefined)).toEqual([true, true, true, false, false]);
  });

  it("a blob stays that is named by a part which is put while others are pruned, also in the same commit", async () => {
    const { parts, blobs, references, streams, post } = await setup(place);
    const [earlier, alongside] = [await blobs.put(randomBytes(8)), await blobs.put(randomBytes(8)), await blobs.put(randomBytes(8))];
    parts.clock.jump(2 * dayMs);
    const usedBefore = parts.clock.now() - dayMs;
    const task = await post("alone");
    let removed = 0;
    await references.spare(usedBefore, undefined, async () => {
      const hold = { taskId: task.id, grant: task.grant };
      expect(await streams.put(hold, [{ uid: "1", value: JSON.stringify(earlier.hash) }])).toBe("ok");
      await blobs.noteUses();
      const prune = blobs.prune(usedBefore, (tx) => references.pending(tx));
      expect(await streams.put(hold, [{ uid: "2", value: JSON.stringify(alongside.hash) }])).toBe("ok");
      removed = await prune;
    });
    expect(removed).toBe(1);
    const left = parts.db.prepare("SELECT hash FROM blob").all();
    expect(left.map((row) => row.hash).sort()).toEqual([earlier.hash, alongside.hash].sort());
  });

  it("a blob that only a kept signal of an open run names stays, also when the signal is sent while others are pruned", async () => {
    const { parts, blobs, references, prune } = await setup(place);
    const stored = await Promise.all(Array.from({ length: 4 }, () => blobs.put(randomBytes(8))));
    const [before, earlier, alongside] = stored.map(({ hash }) => hash) as [string, string, string, string];
    await parts.define("w", ["a"]);
    const { id } = await parts.start("w");
    const send = (hash: string) => parts.runs.signals.send(id, { name: "go", value: JSON.stringify({ archive: hash }) });
    await send(before);
    parts.clock.jump(2 * dayMs);
    const usedBefore = parts.clock.now() - dayMs;
    let removed = 0;
    await references.spare(usedBefore, undefined, async () => {
      await send(earlier);
      await blobs.noteUses();
      const pruning = blobs.prune(usedBefore, (tx) => references.pending(tx));
      await send(alongside);
      removed = await pruning;
    });
    expect(removed).toBe(1);
    expect((await prune({ blobs: { ...forever, ageMs: dayMs } })).blobs).toBe(0);
    const there = await Promise.all(stored.map(({ hash }) => blobs.stat(hash)));
    expect(there.map((blob) => blob !== undefined)).toEqual([true, true, true, false]);
  });

  it("a blob that is first used while others are pruned stays, also in the same commit", async () => {
    const { parts, blobs, references } = await setup(place);
    await parts.define("w", ["a"]);
    const [earlier, alongside] = [await blobs.put(randomBytes(8)), await blobs.put(randomBytes(8)), await blobs.put(randomBytes(8))];
    parts.clock.jump(2 * dayMs);
    const usedBefore = parts.clock.now() - dayMs;
    let removed = 0;
    await references.spare(usedBefore, undefined, async () => {
      await parts.start("w", { input: `"${earlier.hash}"` });
      await blobs.noteUses();
      const before = parts.commit.commits;
      const prune = blobs.prune(usedBefore, (tx) => references.pending(tx));
      await parts.start("w", { input: `"${alongside.hash}"` });
      removed = await prune;
      // Where rows are read later, the pruning looks for unused ones while the run starts.
      expect(parts.commit.commits - before).toBe(place === "rows that are read later" ? 2 : 1);
    });
    expect(removed).toBe(1);
    const left = parts.db.prepare("SELECT hash FROM blob").all();
    expect(left.map((row) => row.hash).sort()).toEqual([earlier.hash, alongside.hash].sort());
  });
});
