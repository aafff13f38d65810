import { setImmediate as turn } from "node:timers/promises";
import { expect, it } from "vitest";
import { openEngine } from "../server/engine.ts";
import { idMaker } from "./ids.ts";
import { RequestIds, type TrackedRequest as Tracked } from "./request-ids.ts";

const id = idMaker()(1_000);

it("a request that is performed again makes the same ids in the same order", async () => {
  const three = (ids: RequestIds) => ids.within({ id, isRepeat: false }, async () => [ids.make(1), await turn(ids.make(2)), ids.make(3)]);
  const first = await three(new RequestIds(idMaker()));
  expect(await three(new RequestIds(idMaker()))).toEqual(first);
  expect(first[0]).toBe(id);
  expect(new Set(first).size).toBe(3);
});

it("work that a request started makes new ids after the response", async () => {
  const ids = new RequestIds(idMaker());
  let later: Promise<string> | undefined;
  await ids.within({ id, isRepeat: true }, () => {
    later = turn().then(() => `${ids.make(1)} ${ids.isRepeat()}`);
  });
  const [made, isRepeat] = ((await later) as string).split(" ");
  expect(isRepeat).toBe("false");
  expect(made).not.toBe(id);
});

it("the end of one request does not affect the ids of other requests, before or after it", async () => {
  const ids = new RequestIds(idMaker());
  const [first, second, third] = [1_000, 2_000, 3_000].map((ms) => ({ id: idMaker()(ms), isRepeat: false })) as [Tracked, Tracked, Tracked];
  let goOn = () => {};
  const long = ids.within(first, async () => {
    await new Promise<void>((resolve) => {
      goOn = resolve;
    });
    return ids.current()?.id;
  });
  expect(await ids.within(second, async () => ids.current()?.id)).toBe(second.id);
  goOn();
  expect(await long).toBe(first.id);
  expect(ids.current()).toBeUndefined();
  expect(await ids.within(third, async () => ids.current()?.id)).toBe(third.id);
});

it("work that follows a commit belongs to no request, although a request began the commit", async () => {
  const ids = new RequestIds(idMaker());
  const engine = await openEngine({ directory: null, ids });
  const seen: boolean[] = [];
  engine.listen({ run: () => seen.push(ids.isRepeat()) });
  const name = "w";
  const source = { name, steps: [{ id: "a", task: "a", input: null }], output: null };
  await engine.runs.define({ name, dialect: "code", source: JSON.stringify(source) });
  await ids.within({ id, isRepeat: true }, () => engine.runs.start({ workflow: name, input: "{}" }));
  expect(seen.length).toBeGreaterThan(0);
  expect(seen).not.toContain(true);
  await engine.close();
});
