import { describe, expect, it } from "vitest";
import { openParts, type Place, places } from "../../../test/support/parts.ts";
import { LocalLogs } from "./local-logs.ts";
import { type LogBatch, type LogChunk, pushBytesMax, pushChunksMax } from "./store.ts";

const at = Date.UTC(2020, 0, 1);

function line(data: string, sequence = 0, more: Partial<LogChunk> = {}): LogChunk {
  return { stream: "stdout", sequence, data, at, ...more };
}

function batch(chunks: LogChunk[], more: Partial<LogBatch> = {}): LogBatch {
  return { taskId: "R1.0", runId: "R1", attempt: 0, grant: 1, chunks, ...more };
}

describe.each(places)("logs in %s", (place: Place) => {
  async function setup(options: { taskBytesMax?: number } = {}) {
    const parts = await openParts(place);
    const logs = new LocalLogs({ ...parts, ...options });
    const texts = async (taskId = "R1.0") => (await logs.read(taskId, { limit: 100_000 })).map((chunk) => chunk.data);
    return { parts, logs, texts };
  }

  it("one push is one row, written in one commit", async () => {
    const { parts, logs, texts } = await setup();
    const before = parts.commit.commits;
    await logs.append(batch([line("a\n"), line("b\n", 1), line("c\n", 2)]));
    expect(parts.commit.commits - before).toBe(1);
    expect(parts.db.prepare("SELECT count(*) AS rows FROM log").get()?.rows).toBe(1);
    expect(await texts()).toEqual(["a\n", "b\n", "c\n"]);
  });

  it("a push of much more than a row has is several rows, in one commit and in order, and is recognised when it is sent again", async () => {
    const { parts, logs, texts } = await setup();
    const sent = batch(Array.from({ length: 10 }, (_, n) => line(`${n}${"x".repeat(100_000)}`, n)));
    const before = parts.commit.commits;
    expect(await logs.append(sent)).toEqual({ stored: 10, repeated: 0, dropped: 0 });
    expect(parts.commit.commits - before).toBe(1);
    expect(parts.db.prepare("SELECT count(*) AS rows FROM log").get()?.rows).toBe(5);
    expect(await logs.append(sent)).toEqual({ stored: 0, repeated: 10, dropped: 0 });
    expect((await texts()).map((text) => text[0])).toEqual([..."0123456789"]);
  });

  it("a very long chunk is stored in pieces that cut no character, and is recognised when it is sent again", async () => {
    const { logs, texts } = await setup();
    const text = `${"x".repeat(262_143)}🚢${"y".repeat(300_000)}\n`;
    expect((await logs.append(batch([line(text, 7)]))).dropped).toBe(0);
    expect(await logs.append(batch([line(text, 7)]))).toMatchObject({ stored: 0 });
    const chunks = await logs.read("R1.0", { limit: 10 });
    expect(chunks.map(({ data, sequence, at: when }) => [data.length, sequence, when])).toEqual([
      [262_143, 7, at],
      [262_144, 7, at],
      [37_859, 7, at],
    ]);
    expect((await texts()).join("")).toBe(text);
  });

  it("[G46] an identical batch that is sent again is stored once", async () => {
    const { logs, texts } = await setup();
    const sent = batch([line("a\n"), line("b\n", 1)]);
    expect(await logs.append(sent)).toEqual({ stored: 2, repeated: 0, dropped: 0 });
    expect(await logs.append(sent)).toEqual({ stored: 0, repeated: 2, dropped: 0 });
    expect(await texts()).toEqual(["a\n", "b\n"]);
  });

  it("[G46] equal lines with a new sequence are kept", async () => {
    const { logs, texts } = await setup();
    await logs.append(batch([line("same\n", 0), line("same\n", 1)]));
    await logs.append(batch([line("same\n", 2)]));
    expect(await texts()).toEqual(["same\n", "same\n", "same\n"]);
  });

  it("[G46] a resend that carries new lines as well stores only those", async () => {
    const { logs, texts } = await setup();
    await logs.append(batch([line("a\n"), line("b\n", 1)]));
    expect(await logs.append(batch([line("b\n", 1), line("c\n", 2)]))).toEqual({ stored: 1, repeated: 1, dropped: 0 });
    expect(await texts()).toEqual(["a\n", "b\n", "c\n"]);
  });

  it("[G47] batches with sequence 0 and different data are all kept, in arrival order", async () => {
    const { logs, texts } = await setup();
    const sent = Array.from({ length: 50 }, (_, n) => `line ${n}\n`);
    for (const text of sent) await logs.append(batch([line(text)]));
    expect(await texts()).toEqual(sent);
  });

  it("equal chunks inside one batch are all stored, and all recognised when the batch is sent again", async () => {
    const { logs, texts } = await setup();
    const sent = batch([line("tick\n"), line("tick\n"), line("tick\n")]);
    expect((await logs.append(sent)).stored).toBe(3);
    expect((await logs.append(sent)).repeated).toBe(3);
    expect(await texts()).toHaveLength(3);
  });

  it("a resend that shares a commit with its original is stored once", async () => {
    const { logs, texts } = await setup();
    const sent = batch([line("a\n")]);
    const answers = await Promise.all([logs.append(sent), logs.append(sent), logs.append(sent)]);
    expect(answers.map((answer) => answer.stored)).toEqual([1, 0, 0]);
    expect(await texts()).toEqual(["a\n"]);
  });

  it("another stream, time, hand-out or task makes it another chunk", async () => {
    const { logs, texts } = await setup();
    await logs.append(batch([line("a\n")]));
    await logs.append(batch([line("a\n", 0, { stream: "stderr" })]));
    await logs.append(batch([line("a\n", 0, { at: at + 1 })]));
    await logs.append(batch([line("a\n")], { grant: 3 }));
    await logs.append(batch([line("a\n")], { taskId: "R1.1" }));
    expect(await texts()).toHaveLength(4);
    expect(await texts("R1.1")).toHaveLength(1);
  });

  it("[G49] chunks of a later attempt and of another run are distinguished", async () => {
    const { logs } = await setup();
    await logs.append(batch([line("first\n")]));
    await logs.append(batch([line("second\n")], { attempt: 1, grant: 3 }));
    await logs.append(batch([line("elsewhere\n")], { taskId: "R2.0", runId: "R2" }));
    const chunks = await logs.read("R1.0", { limit: 10 });
    expect(chunks.map(({ attempt, grant, data }) => [attempt, grant, data])).toEqual([
      [0, 1, "first\n"],
      [1, 3, "second\n"],
    ]);
  });

  it("a late line of an earlier attempt is read before the later attempt, and followed after it", async () => {
    const { logs } = await setup();
    await logs.append(batch([line("a0\n")]));
    await logs.append(batch([line("b0\n")], { attempt: 1, grant: 3 }));
    await logs.append(batch([line("a1\n", 1)]));
    expect((await logs.read("R1.0", { limit: 10 })).map((chunk) => chunk.data)).toEqual(["a0\n", "a1\n", "b0\n"]);
    expect((await logs.since({ taskId: "R1.0" }, 0, 10)).map((chunk) => chunk.data)).toEqual(["a0\n", "b0\n", "a1\n"]);
  });

  it("pages of any size give every chunk once, in both orders", async () => {
    const { logs } = await setup();
    for (let push = 0; push < 7; push++) {
      const chunks = Array.from({ length: 1 + (push % 3) }, (_, n) => line(`${push}.${n}\n`, n));
      await logs.append(batch(chunks, { attempt: push % 2, grant: 1 + 2 * (push % 2) }));
    }
    const read = await logs.read("R1.0", { limit: 100 });
    const followed = await logs.since({ taskId: "R1.0" }, 0, 100);
    for (const limit of [1, 2, 3, 5]) {
      const pages = async (next: (after: number) => Promise<typeof read>) => {
        const all: typeof read = [];
        for (let page = await next(0); page.length > 0; page = await next(all.at(-1)!.position)) all.push(...page);
        return all;
      };
      expect(await pages((after) => logs.read("R1.0", { after, limit }))).toEqual(read);
      expect(await pages((after) => logs.since({ taskId: "R1.0" }, after, limit))).toEqual(followed);
      expect(await pages((after) => logs.since({ runId: "R1" }, after, limit))).toEqual(followed);
    }
  });

  it("the log of a run is that of all its tasks and of no other run", async () => {
    const { logs } = await setup();
    await logs.append(batch([line("a\n")]));
    await logs.append(batch([line("b\n")], { taskId: "R1.1" }));
    await logs.append(batch([line("c\n")], { taskId: "R10.1", runId: "R10" }));
    await logs.append(batch([line("d\n")], { taskId: "T1", runId: null }));
    expect((await logs.since({ runId: "R1" }, 0, 10)).map((chunk) => chunk.data)).toEqual(["a\n", "b\n"]);
    expect((await logs.since({ taskId: "T1" }, 0, 10)).map((chunk) => chunk.data)).toEqual(["d\n"]);
  });

  it("a full log is marked once and drops the rest", async () => {
    const { logs, texts } = await setup({ taskBytesMax: 1_000 });
    const answers = [];
    for (let push = 0; push < 20; push++) answers.push(await logs.append(batch([line("x".repeat(36), push)])));
    // 64 are counted for each chunk besides its text.
    expect(answers.reduce((sum, answer) => sum + answer.stored, 0)).toBe(10);
    expect(answers.reduce((sum, answer) => sum + answer.dropped, 0)).toBe(10);
    const kept = await texts();
    expect(kept).toHaveLength(11);
    expect(kept.at(-1)).toContain("reached its limit of 1000 bytes");
  });

  it("of a batch that does not fit, the first lines are kept", async () => {
    const { logs, texts } = await setup({ taskBytesMax: 300 });
    const chunks = Array.from({ length: 5 }, (_, n) => line("x".repeat(36), n));
    expect(await logs.append(batch(chunks))).toEqual({ stored: 3, repeated: 0, dropped: 2 });
    expect(await texts()).toHaveLength(4);
  });

  it("a push that is too large is refused with the limit named", async () => {
    const { logs, texts } = await setup();
    const many = Array.from({ length: pushChunksMax + 1 }, (_, n) => line("", n));
    await expect(logs.append(batch(many))).rejects.toMatchObject({
      code: "LONGSHORE_LIMIT",
      detail: { expected: `at most ${pushChunksMax} chunks` },
    });
    await expect(logs.append(batch([line("x".repeat(pushBytesMax + 1))]))).rejects.toMatchObject({ code: "LONGSHORE_LIMIT" });
    expect(await texts()).toEqual([]);
  });

  it("characters that are difficult for databases are kept", async () => {
    const { logs, texts } = await setup();
    const odd = ["\u0000nul\u0000\n", "\ud800 half a pair\n", "日本語 🚢\n", "", '"quoted" \\ \r\n'];
    await logs.append(batch(odd.map((data, sequence) => line(data, sequence))));
    expect(await texts()).toEqual(odd);
  });

  it("the last line is the newest one with text in it", async () => {
    const { logs } = await setup();
    expect(await logs.lastLine("R1.0")).toBeNull();
    await logs.append(batch([line("compiling\nlinking\r\n"), line("\n  \n", 1)]));
    expect(await logs.lastLine("R1.0")).toBe("linking");
    await logs.append(batch([line("\n", 2)]));
    expect(await logs.lastLine("R1.0")).toBe("linking");
    await logs.append(batch([line("again\n")], { attempt: 1, grant: 3 }));
    expect(await logs.lastLine("R1.0")).toBe("again");
  });

  it("the last line is the one before the stack of an error", async () => {
    const { logs } = await setup();
    await logs.append(batch([line("pricing\n"), line("TypeError: no items\n    at price (order.ts:8:77)\n", 1)]));
    expect(await logs.lastLine("R1.0")).toBe("pricing");
  });

  it("a last line is looked for in the newest 256 KiB", async () => {
    const { logs } = await setup();
    await logs.append(batch([line("first\n"), line("\n".repeat(600_000), 1)]));
    expect(await logs.lastLine("R1.0")).toBeNull();
    await logs.append(batch([line(`${"x".repeat(300_000)}\nlast\n`, 2)]));
    expect(await logs.lastLine("R1.0")).toBe("last");
  });

  it("a push that could not be written is not treated as a duplicate when it is sent again", async () => {
    const { parts, logs, texts } = await setup();
    parts.db.exec("CREATE TRIGGER refuse BEFORE INSERT ON log BEGIN SELECT raise(FAIL, 'no room'); END");
    await expect(logs.append(batch([line("a\n")]))).rejects.toThrow("no room");
    parts.db.exec("DROP TRIGGER refuse");
    expect((await logs.append(batch([line("a\n")]))).stored).toBe(1);
    expect(await texts()).toEqual(["a\n"]);
  });
});

describe("logs after a restart", () => {
  async function restart(parts: Awaited<ReturnType<typeof openParts>>, options: { taskBytesMax?: number } = {}) {
    await parts.close();
    const again = await openParts("a file", parts);
    return { parts: again, logs: new LocalLogs({ ...again, ...options }) };
  }

  it("[G46, G47] a resend is still known, and new data with an old sequence is still new", async () => {
    const parts = await openParts("a file");
    const sent = batch([line("a\n"), line("a\n"), line("b\n")]);
    await new LocalLogs(parts).append(sent);
    const { logs } = await restart(parts);
    expect(await logs.append(sent)).toEqual({ stored: 0, repeated: 3, dropped: 0 });
    expect((await logs.append(batch([line("c\n")]))).stored).toBe(1);
    expect((await logs.read("R1.0", { limit: 10 })).map((chunk) => chunk.data)).toEqual(["a\n", "a\n", "b\n", "c\n"]);
  });

  it("a full log stays full, and gets no second mark", async () => {
    const parts = await openParts("a file");
    const first = new LocalLogs({ ...parts, taskBytesMax: 100 });
    await first.append(batch([line("x".repeat(200))]));
    const { logs } = await restart(parts, { taskBytesMax: 100 });
    expect(await logs.append(batch([line("more\n", 1)]))).toEqual({ stored: 0, repeated: 0, dropped: 1 });
    expect(await logs.read("R1.0", { limit: 10 })).toHaveLength(1);
  });

  it("a position is never given out again, even when everything was pruned", async () => {
    const parts = await openParts("a file");
    const first = new LocalLogs(parts);
    await first.append(batch([line("a\n")]));
    const [chunk] = await first.read("R1.0", { limit: 1 });
    parts.db.exec("DELETE FROM log");
    const { logs } = await restart(parts);
    await logs.append(batch([line("b\n")], { taskId: "R2.0", runId: "R2" }));
    const [next] = await logs.read("R2.0", { limit: 1 });
    expect(next!.position).toBeGreaterThan(chunk!.position);
  });
});
