// Replies that hand out something, when the link to their node breaks.

import { describe, expect, it } from "vitest";
import { idMaker } from "../core/ids.ts";
import { RequestIds } from "../core/request-ids.ts";
import type { HttpReply, RouteGroup } from "../net/http/http.ts";
import { TestClock } from "../testing/clock.ts";
import type { CarriedRequest } from "./carried-request.ts";
import { Performer } from "./performer.ts";

const route = "POST /claim";
const request = (id: string): CarriedRequest => ({
  ...{ route, path: "/claim", params: {}, query: "", headers: {}, text: "", id },
  caller: { scopes: ["worker"] },
});

/** An owner whose only route hands out something. */
function setup() {
  const takenBack: number[] = [];
  let granted = 0;
  const reply = (): HttpReply => {
    const grant = ++granted;
    return { status: 200, body: String(grant), undelivered: () => takenBack.push(grant) };
  };
  const group = { name: "test", routes: [{ method: "POST", path: "/claim", action: "task.claim", handle: reply }], refuse: reply };
  const clock = new TestClock();
  const performer = new Performer({
    ...{ table: { groups: [group as unknown as RouteGroup], methods: [] }, clock, ids: new RequestIds(idMaker()) },
    answers: { answer: async () => null, keepAnswer: async () => {} },
    program: async () => undefined,
    isOver: () => false,
  });
  const link = { isOver: false };
  const call = (name: string, args: unknown, isRepeat = false) =>
    performer.call(name, args, { key: "", node: "n", link, isRepeat, signal: new AbortController().signal });
  const claim = async (id: string, isRepeat = false) => ((await call("request", request(id), isRepeat)) as { text: string }).text;
  return {
    takenBack,
    link,
    performer,
    clock,
    claim,
    confirm: (told: object) => call("confirm", { delivered: [], undelivered: [], ...told }),
  };
}

describe("a reply that hands out something", () => {
  it("is taken back when the node reports that its client has disconnected", async () => {
    const { claim, confirm, takenBack } = setup();
    await claim("a");
    await confirm({ undelivered: ["a"] });
    expect(takenBack).toEqual([1]);
  });

  it("is not taken back when the link breaks: the client may have it", async () => {
    const { claim, confirm, link, performer, takenBack, clock } = setup();
    await claim("a");
    await claim("b");
    performer.left(link);
    expect(takenBack).toEqual([]);
    await confirm({ delivered: ["a"] });
    await clock.advance(120_000);
    await confirm({ undelivered: ["b"] });
    expect(takenBack).toEqual([]);
  });

  it("is taken back when the node sends the request again, because it did not get the reply", async () => {
    const { claim, link, performer, takenBack } = setup();
    expect(await claim("a")).toBe("1");
    performer.left(link);
    expect(await claim("a", true)).toBe("2");
    expect(takenBack).toEqual([1]);
  });
});
