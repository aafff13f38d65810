import { Writable } from "node:stream";
import { describe, expect, it } from "vitest";
import { PacedWrite, pieceBytes } from "./paced-write.ts";

/** Takes one piece at a time, when the test allows it. */
function reader() {
  const taken: Buffer[] = [];
  let next: (() => void) | undefined;
  const to = new Writable({
    write(chunk: Buffer, _encoding, done) {
      taken.push(chunk);
      next = done;
    },
  });
  const take = async () => {
    next?.();
    await new Promise((resolve) => setImmediate(resolve));
  };
  return { to, taken, take };
}

describe("a paced write", () => {
  it("writes the next piece when the one before is sent, and reports when all are sent", async () => {
    const { to, taken, take } = reader();
    let done = 0;
    const body = "x".repeat(2 * pieceBytes + 10);
    const writing = new PacedWrite(
      to,
      body,
      () => done++,
      () => {},
    );
    writing.start();
    expect(taken).toHaveLength(1);
    expect(writing.progress()).toBe(0);
    await take();
    expect([taken.length, writing.progress(), to.writableLength]).toEqual([2, pieceBytes, pieceBytes]);
    await take();
    expect(done).toBe(0);
    await take();
    expect([done, Buffer.concat(taken).toString()]).toEqual([1, body]);
  });

  it.each([0, 1])("cuts no character in two (%i before it)", async (before) => {
    const { to, taken, take } = reader();
    const body = "y".repeat(before) + "\u{1f600}".repeat(pieceBytes);
    let done = false;
    new PacedWrite(
      to,
      body,
      () => {
        done = true;
      },
      () => {},
    ).start();
    while (!done) await take();
    expect(Buffer.concat(taken).toString()).toBe(body);
  });

  it("writes bytes unchanged, and nothing after its stop", async () => {
    const { to, taken, take } = reader();
    const body = Buffer.alloc(3 * pieceBytes, 7);
    const writing = new PacedWrite(
      to,
      body,
      () => {},
      () => {},
    );
    writing.start();
    await take();
    writing.stop();
    await take();
    expect(taken.map(({ length }) => length)).toEqual([pieceBytes, pieceBytes]);
  });
});
