// Access keys and tokens, as a server receives them.

import { describe, expect, it } from "vitest";
import { anyPoll, anyUpdate, json } from "../../../../test/support/conductor-stub.ts";
import { setup } from "../../../../test/support/conductor-worker.ts";
import { until } from "../../../../test/support/until.ts";
import { task } from "../../../core/task.ts";

const greet = task("greet", () => ({ ok: true }));
const tokenCall = /^POST \/api\/token$/;
const keys = { keyId: "key-1", keySecret: "s3cret" };
const token = (text: string) => json(200, { token: text });
const expired = json(401, { error: "EXPIRED_TOKEN", message: "Token has expired" });

describe("an access key", () => {
  it("[C-AUTH-06] is exchanged for a token, which is sent without a prefix with every request", async () => {
    await using s = await setup({
      tasks: [greet],
      wire: keys,
      before: (stub) => {
        stub.misbehave(tokenCall, token("t-1"));
        stub.enqueue("greet");
      },
    });
    await until(() => s.stub.results.length === 1);
    const [exchange, ...others] = s.stub.requests;
    expect(exchange?.body).toEqual({ keyId: "key-1", keySecret: "s3cret" });
    expect(exchange?.headers["x-authorization"]).toBeUndefined();
    expect(others.map(({ headers }) => headers["x-authorization"])).toEqual(others.map(() => "t-1"));
  });

  it("is also read from the environment", async () => {
    await using s = await setup({
      tasks: [greet],
      wire: { env: { CONDUCTOR_AUTH_KEY: "k", CONDUCTOR_AUTH_SECRET: "s" } },
      before: (stub) => void stub.misbehave(tokenCall, token("t-1")),
    });
    await until(() => s.stub.seen(anyPoll).length > 0);
    expect(s.stub.seen(tokenCall)[0]?.body).toEqual({ keyId: "k", keySecret: "s" });
  });

  it("[C-AUTH-07] is not needed by a server without a token endpoint", async () => {
    await using s = await setup({ tasks: [greet], wire: keys, before: (stub) => void stub.enqueue("greet") });
    await until(() => s.stub.results.length === 1);
    expect(s.stub.seen(tokenCall)).toHaveLength(1);
    expect(s.stub.seen(anyPoll)[0]?.headers["x-authorization"]).toBeUndefined();
  });

  it("that is wrong is reported without the secret, and tried again after growing pauses", async () => {
    await using s = await setup({
      tasks: [greet],
      wire: keys,
      before: (stub) => void stub.misbehave(tokenCall, json(401, { message: "bad key" })),
    });
    for (const [exchanges, waitMs] of [2_000, 4_000, 8_000].entries()) {
      await until(() => s.stub.seen(tokenCall).length === exchanges + 1);
      await s.clock.armed(waitMs);
      await s.clock.advance(waitMs - 1);
      expect(s.stub.seen(tokenCall)).toHaveLength(exchanges + 1);
      await s.clock.advance(1);
    }
    expect(s.stub.seen(anyPoll)).toEqual([]);
    const told = s.notices.map(({ message }) => message).join("\n");
    expect(told).toContain("The server refuses the access key (status 401); check keyId and keySecret, or CONDUCTOR_AUTH_KEY");
    expect(told).not.toContain("s3cret");
  });
});

describe("a token", () => {
  it("[C-AUTH-08] that has expired is renewed, and the request sent again once", async () => {
    await using s = await setup({
      tasks: [greet],
      wire: keys,
      before: (stub) => {
        stub.misbehave(tokenCall, token("old"), 1);
        stub.misbehave(tokenCall, token("new"));
        stub.misbehave(anyPoll, expired, 1);
        stub.enqueue("greet");
      },
    });
    await until(() => s.stub.results.length === 1);
    expect(
      s.stub
        .seen(anyPoll)
        .slice(0, 2)
        .map(({ headers }) => headers["x-authorization"]),
    ).toEqual(["old", "new"]);
    expect(s.stub.seen(anyUpdate)[0]?.headers["x-authorization"]).toBe("new");
  });

  it("that is still refused after its renewal counts as a refused poll", async () => {
    await using s = await setup({
      tasks: [greet],
      wire: keys,
      before: (stub) => {
        stub.misbehave(tokenCall, token("old"), 1);
        stub.misbehave(tokenCall, token("new"));
        stub.misbehave(anyPoll, expired);
      },
    });
    await until(() => s.notices.some(({ message }) => message.includes("poll of greet fails")));
    // The pause after a refusal has no jitter.
    await s.clock.armed(2_000);
    expect(s.stub.seen(anyPoll)).toHaveLength(2);
    expect(s.stub.seen(tokenCall)).toHaveLength(2);
  });

  it("[C-AUTH-10] is renewed before a request when it is 45 minutes old, once for all waiting requests", async () => {
    await using s = await setup({
      tasks: [greet, task("other", () => null)],
      wire: keys,
      before: (stub) => void stub.misbehave(tokenCall, token("t")),
    });
    await until(() => s.stub.seen(anyPoll).length >= 2);
    expect(s.stub.seen(tokenCall)).toHaveLength(1);
    await s.clock.armed(1, 2);
    s.clock.jump(45 * 60_000 - 1);
    const polls = s.stub.seen(anyPoll).length;
    await s.clock.advance(0);
    await until(() => s.stub.seen(anyPoll).length >= polls + 2);
    expect(s.stub.seen(tokenCall)).toHaveLength(1);
    await s.clock.armed(2, 2);
    await s.clock.advance(2);
    await until(() => s.stub.seen(tokenCall).length === 2);
  });

  it("[C-AUTH-09] that cannot be renewed now is still used, and the renewal is tried after 2, 4 ... s", async () => {
    await using s = await setup({
      tasks: [greet],
      wire: { ...keys, pollInterval: "1s" },
      before: (stub) => {
        stub.misbehave(tokenCall, token("old"), 1);
        stub.misbehave(tokenCall, { status: 503 }, 2);
        stub.misbehave(tokenCall, token("new"));
      },
    });
    await until(() => s.stub.seen(anyPoll).length === 1);
    await s.clock.armed(1);
    s.clock.jump(45 * 60_000);
    const started = s.clock.now();
    const at: number[] = [];
    let seen = 1;
    while (s.stub.seen(tokenCall).length < 4) {
      const polls = s.stub.seen(anyPoll).length;
      await s.clock.advance(100);
      await until(() => s.stub.seen(anyPoll).length > polls || s.clock.nextAtMs !== undefined);
      if (s.stub.seen(tokenCall).length > seen) at.push(s.clock.now() - started);
      seen = s.stub.seen(tokenCall).length;
    }
    const tokens = new Set(s.stub.seen(anyPoll).map(({ headers }) => headers["x-authorization"]));
    expect([...tokens]).toContain("old");
    expect((at[1] as number) - (at[0] as number)).toBeGreaterThanOrEqual(1_900);
    expect((at[2] as number) - (at[1] as number)).toBeGreaterThanOrEqual(3_900);
  });
});
