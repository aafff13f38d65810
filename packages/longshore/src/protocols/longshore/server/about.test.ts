import { describe, expect, it } from "vitest";
import { startAdminServer } from "../../../../test/support/admin.ts";

const secret = "reader-secret-0123456789";
const bearer = { authorization: `Bearer ${secret}` };

describe("whoami", () => {
  it("allows everything on a server without tokens", async () => {
    const { api } = await startAdminServer();
    const { body } = await api("GET", "/whoami");
    expect(body).toMatchObject({ name: null, tokensRequired: false, scopes: ["read", "worker", "operator"] });
    expect(body.actions["run.steer"]).toEqual({ may: true, needs: "operator", what: expect.stringContaining("cancel") });
  });

  it("names the token and the scope that each refused action needs", async () => {
    const { api } = await startAdminServer({ tokens: [`read:${secret}:anna`] });
    const { body } = await api("GET", "/whoami", undefined, bearer);
    expect(body).toMatchObject({ name: "anna", tokensRequired: true, scopes: ["read"] });
    expect(body.actions["run.read"].may).toBe(true);
    expect(body.actions["run.steer"]).toMatchObject({ may: false, needs: "operator" });
    expect(JSON.stringify(body)).not.toContain(secret);
  });

  it("is refused without a token that the server knows", async () => {
    const { api } = await startAdminServer({ tokens: [`read:${secret}:anna`] });
    const given: Record<string, string>[] = [{}, { authorization: "Bearer another-secret-0123456789" }];
    for (const headers of given) {
      const answer = await api("GET", "/whoami", undefined, headers);
      expect([answer.status, answer.headers["www-authenticate"]]).toEqual([401, "Bearer"]);
    }
  });
});

describe("info", () => {
  it("has the version, the sizes and the retention of the server", async () => {
    const { api, clock } = await startAdminServer({ retention: { runs: { count: 7 } } });
    await api("POST", "/tasks", { task: "t", input: 1 });
    const { body } = await api("GET", "/info");
    expect(body).toMatchObject({ pid: process.pid, node: process.version, now: clock.now(), store: { writable: true, problem: null } });
    expect(body.kept.runs).toMatchObject({ count: 7 });
    expect(body.stored.map(({ kind }: { kind: string }) => kind)).toContain("logs");
    expect(body.store.parts.map(({ part }: { part: string }) => part)).toContain("file");
    expect(body.counts).toEqual({ openRuns: 0, endedRuns: 0, endedTasks: 0 });
  });

  it("writes a limit that does not exist as null", async () => {
    const { api } = await startAdminServer({ retention: { logs: { ageMs: Number.POSITIVE_INFINITY } } });
    expect((await api("GET", "/info")).body.kept.logs.ageMs).toBeNull();
  });
});
