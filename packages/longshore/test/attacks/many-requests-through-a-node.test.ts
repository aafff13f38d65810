// The attacker has a worker token and sends very many small requests to a node that does not own the data. The node passes on all requests of
// one turn of the event loop in one frame, and frames accumulate while the owner is busy. The owner used to begin all requests of a frame in
// one turn, and every other caller waited. Both ends of a link must handle a limited number of messages in a turn.

import { expect, it } from "vitest";
import { held, startNode, startOwner } from "../support/link.ts";
import { countTurns } from "../support/turn-count.ts";
import { until } from "../support/until.ts";

/** The maximum number of messages in a turn, of one link and of all links of a node. */
const perLink = 64;
const perTurn = 2 * perLink;

it("the owner begins a few requests of a node in each turn, and answers all", async () => {
  const begun = countTurns();
  const owner = await startOwner({
    call: async (_name, args) => {
      begun.add();
      return args;
    },
    open: () => () => undefined,
  });
  const node = startNode(() => owner);
  await node.call("echo", 0);
  const answers = await Promise.all(Array.from({ length: 2_000 }, (_, at) => node.call("echo", at)));
  expect(answers).toEqual(Array.from({ length: 2_000 }, (_, at) => at));
  expect(begun.most).toBeLessThanOrEqual(perLink);
});

it("requests of many nodes share one turn of the owner", async () => {
  const begun = countTurns();
  const owner = await startOwner({
    call: async () => {
      begun.add();
      return null;
    },
    open: () => () => undefined,
  });
  const nodes = Array.from({ length: 6 }, (_, at) => startNode(() => owner, { node: `node-${at}` }));
  await Promise.all(nodes.map((node) => node.call("echo", 0)));
  await Promise.all(nodes.flatMap((node) => Array.from({ length: 1_000 }, () => node.call("echo", 1))));
  // Each link may handle four messages, independent of the other links.
  expect(begun.most).toBeLessThanOrEqual(perTurn + 6 * 4);
});

it("a node handles a few replies in a turn, and all of them before the end of its link", async () => {
  const { calls, service } = held();
  const owner = await startOwner(service);
  const node = startNode(() => owner);
  const taken = countTurns();
  const replies = Array.from({ length: 2_000 }, () => node.call("wait", null).then(() => taken.add()));
  await until(() => calls.length === 2_000);
  for (const { answer } of calls) answer("done");
  // The owner hands over the data: it sends the finished replies, and ends the link.
  await new Promise((resolve) => setImmediate(resolve));
  void owner.link.end();
  await Promise.all(replies);
  expect(taken.most).toBeLessThanOrEqual(perLink);
  expect(node.figures.resent).toBe(0);
});
