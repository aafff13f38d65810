// The attacker holds a read token and requests large responses on many connections at the same time. Each request once read its first rows
// before it waited for its turn. A few hundred requests held gigabytes, and fifteen hundred ended the process.

import { expect, it } from "vitest";
import { unary } from "../../src/net/grpc/service.ts";
import { madeAtOnce } from "../../src/net/listener/answer-slots.ts";
import { createAuth, parseToken } from "../../src/net/listener/auth.ts";
import { channelTo, Echo } from "../support/grpc.ts";
import { call, groupOf, latch, route, startServer } from "../support/http.ts";
import { until } from "../support/until.ts";

const tokens = ["read:attacker-0123456789:attacker", "read:honest-0123456789:honest"];
const auth = createAuth(tokens.map((token) => parseToken(token, "a test")));
const bearer = (name: "attacker" | "honest") => ({ authorization: `Bearer ${name}-0123456789` });
const requests = 3 * madeAtOnce;

/** A server whose responses take as long as the test wants. It counts how many are built at the same time. */
async function started() {
  const may = latch();
  const atWork = { now: 0, most: 0 };
  const make = async () => {
    atWork.now++;
    atWork.most = Math.max(atWork.most, atWork.now);
    await may.opened;
    atWork.now--;
  };
  const large = route("GET /large", async () => make().then(() => ({ status: 200, body: "large" })), { action: "run.read" });
  const long = route(
    "GET /long",
    async (request) => {
      const { gone } = request;
      await make();
      return { status: 200, body: String(gone.aborted) };
    },
    { action: "run.read" },
  );
  const small = route("GET /small", () => ({ status: 200, body: "small" }), { action: "run.read" });
  const say = unary(Echo.Say, "run.read", async ({ text }) => make().then(() => ({ text })));
  const server = await startServer({ groups: [groupOf("main", [large, long, small])], methods: [say], auth });
  const get = (path: string, name: "attacker" | "honest") => call(`${server.url}${path}`, { headers: bearer(name) });
  return { server, atWork, go: () => may.open(), get };
}

it("over HTTP, few responses for one token are built at the same time, the others wait, and other tokens do not wait", async () => {
  const { atWork, go, get } = await started();
  const all = Array.from({ length: requests }, () => get("/large", "attacker"));
  await until(() => atWork.now === madeAtOnce);
  expect((await get("/small", "honest")).text).toBe("small");
  go();
  expect(new Set((await Promise.all(all)).map(({ text }) => text))).toEqual(new Set(["large"]));
  expect(atWork.most).toBe(madeAtOnce);
});

it("over gRPC, few responses for one token are built at the same time", async () => {
  const { server, atWork, go } = await started();
  const channel = channelTo(`127.0.0.1:${server.port}`, { metadata: bearer("attacker") });
  const all = Array.from({ length: requests }, () => channel.unary(Echo.Say, { text: "hi" }));
  await until(() => atWork.now === madeAtOnce);
  go();
  expect(await Promise.all(all)).toHaveLength(requests);
  expect(atWork.most).toBe(madeAtOnce);
});

it("requests that wait for an event do not delay other requests of their token", async () => {
  const { atWork, go, get } = await started();
  const all = Array.from({ length: requests }, () => get("/long", "attacker"));
  await until(() => atWork.now === requests);
  expect((await get("/small", "attacker")).text).toBe("small");
  go();
  await Promise.all(all);
});
