// The attacker holds a read token and asks for large answers on many connections at once. Each request had read the first of what it shows before it
// waited for its turn, so that a few hundred of them held gigabytes, and fifteen hundred ended the process.

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

/** A server whose answers take as long as the test wants, which counts how many are made at once. */
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

it("few answers of one token are made at once over HTTP, the others wait, and other tokens are not kept waiting", async () => {
  const { atWork, go, get } = await started();
  const all = Array.from({ length: requests }, () => get("/large", "attacker"));
  await until(() => atWork.now === madeAtOnce);
  expect((await get("/small", "honest")).text).toBe("small");
  go();
  expect(new Set((await Promise.all(all)).map(({ text }) => text))).toEqual(new Set(["large"]));
  expect(atWork.most).toBe(madeAtOnce);
});

it("few answers of one token are made at once over gRPC", async () => {
  const { server, atWork, go } = await started();
  const channel = channelTo(`127.0.0.1:${server.port}`, { metadata: bearer("attacker") });
  const all = Array.from({ length: requests }, () => channel.unary(Echo.Say, { text: "hi" }));
  await until(() => atWork.now === madeAtOnce);
  go();
  expect(await Promise.all(all)).toHaveLength(requests);
  expect(atWork.most).toBe(madeAtOnce);
});

it("requests that wait for something to happen keep no others of their token waiting", async () => {
  const { atWork, go, get } = await started();
  const all = Array.from({ length: requests }, () => get("/long", "attacker"));
  await until(() => atWork.now === requests);
  expect((await get("/small", "attacker")).text).toBe("small");
  go();
  await Promise.all(all);
});
