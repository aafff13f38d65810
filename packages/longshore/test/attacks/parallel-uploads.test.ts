// Several clients upload blobs at once when the quota is nearly used up. Each had got room for the part that had arrived, so that none of them
// could be completed: all were refused although one of them would have fitted.

import { expect, it, onTestFinished } from "vitest";
import { blobFileBytes } from "../../src/engine/blob/local-blobs.ts";
import { openEngineWithStore } from "../support/engine.ts";

const quotaMissed = { code: "LONGSHORE_LIMIT", detail: { field: "quotas.blobBytes" } };

/** An upload. `send` sends its next piece, and resolves when the server wants another one or has refused the upload. */
function upload(blobs: { put(content: AsyncIterable<Uint8Array>): Promise<{ bytes: number }> }, letter: string) {
  const steps: ((size: number) => void)[] = [];
  let wanted = () => {};
  async function* content() {
    for (;;) {
      const size = await new Promise<number>((resolve) => {
        steps.push(resolve);
        wanted();
      });
      if (size === 0) return;
      yield Buffer.from(letter.repeat(size));
    }
  }
  const asked = () => new Promise<void>((resolve) => (wanted = resolve));
  const begun = asked();
  const done = blobs.put(content());
  const settled = done.then(
    () => {},
    () => {},
  );
  return {
    begun,
    done,
    async send(size: number) {
      const next = asked();
      steps.shift()?.(size);
      await Promise.race([next, settled]);
    },
  };
}

/** Room for two blobs of 50 bytes, or for one of 100 and more. */
async function setup() {
  const engine = await openEngineWithStore({ directory: null, quotas: { blobBytes: 2 * (blobFileBytes + 50) } });
  onTestFinished(() => engine.close());
  const begin = async (letter: string) => {
    const begun = upload(engine.blobs, letter);
    await begun.begun;
    return begun;
  };
  return { engine, begin, room: engine.store.stored.of("blobs") };
}

it("of parallel uploads that do not fit together, the one that began first is stored", async () => {
  const { begin, room } = await setup();
  const [first, second] = [await begin("a"), await begin("b")];
  await first.send(50);
  await second.send(50);
  await first.send(30);
  await second.send(30);
  await first.send(0);
  expect(await first.done).toMatchObject({ bytes: 80 });
  await expect(second.done).rejects.toMatchObject(quotaMissed);
  expect(room.used).toBe(blobFileBytes + 80);
  expect(room.refused).toBe(1);
});

it("an upload without room beside earlier ones is refused, and nothing takes the room of one that has arrived", async () => {
  const { engine, begin, room } = await setup();
  const [first, second] = [await begin("a"), await begin("b")];
  await first.send(40);
  await second.send(60);
  await expect(engine.blobs.put(Buffer.from("c"))).rejects.toMatchObject(quotaMissed);
  await second.send(0);
  expect(await second.done).toMatchObject({ bytes: 60 });
  await first.send(1);
  await expect(first.done).rejects.toMatchObject(quotaMissed);
  expect(room.used).toBe(blobFileBytes + 60);
});

it("an earlier upload that never fits takes no room from later ones", async () => {
  const { begin } = await setup();
  const [first, second] = [await begin("a"), await begin("b")];
  await second.send(50);
  await first.send(3 * blobFileBytes);
  await expect(first.done).rejects.toMatchObject(quotaMissed);
  await second.send(0);
  expect(await second.done).toMatchObject({ bytes: 50 });
});
