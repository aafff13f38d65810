import { describe, expect, it } from "vitest";
import { deferred } from "../../../../test/support/until.ts";
import { GrpcCode, GrpcError } from "../../../net/grpc/status.ts";
import { TestClock } from "../../../testing/clock.ts";
import { OrchestratorService } from "../wire/services.ts";
import { addressOf, type Channel, Orchestrators } from "./orchestrators.ts";

/** Channels by address; `answer` has the responses to their calls. */
function setup(answer: (address: string) => unknown = () => ({}), first?: string) {
  const clock = new TestClock();
  const opened: string[] = [];
  const closed: string[] = [];
  const asked: string[] = [];
  const open = (address: string): Channel => {
    opened.push(address);
    return {
      unary: async () => {
        asked.push(address);
        return (await answer(address)) as never;
      },
      close: async () => void closed.push(address),
    };
  };
  const orchestrators = new Orchestrators({ clock, open, ...(first === undefined ? {} : { first }) });
  return { clock, opened, closed, asked, orchestrators };
}

const call = (s: ReturnType<typeof setup>, url: string) => s.orchestrators.at(url).unary(OrchestratorService.GetRun, {}, { timeoutMs: 1 });

describe("channels to orchestrators", () => {
  it("are one for each address, in any spelling", () => {
    const s = setup();
    const urls = ["host:7837", "http://host:7837", "http://HOST:7837/", "grpc://host:7837", " host:7837 ", "dns:///host:7837"];
    expect(new Set(urls.map((url) => s.orchestrators.at(url))).size).toBe(1);
    expect(s.opened).toEqual(["host:7837"]);
    expect(s.orchestrators.at("https://host:7837")).not.toBe(s.orchestrators.at("host:7837"));
    expect(addressOf("https://Host:7837/")).toBe("https://host:7837");
  });

  it("are at most sixteen: the least recently used one without an open call is dropped", async () => {
    const answer = deferred<unknown>();
    const s = setup((address) => (address === "h0:1" ? answer.promise : {}));
    const pending = call(s, "h0:1");
    for (let n = 1; n < 16; n++) s.orchestrators.at(`h${n}:1`);
    s.orchestrators.at("h1:1");
    s.orchestrators.at("new:1");
    expect(s.closed).toEqual(["h2:1"]);
    s.orchestrators.at("newer:1");
    expect(s.closed).toEqual(["h2:1", "h3:1"]);
    answer.resolve({});
    await pending;
    await s.orchestrators.close();
    expect(s.closed).toHaveLength(18);
  });
});

describe("the orchestrator of a run", () => {
  const located = (url: string) => ({ orchestratorServiceUrl: url });
  const unavailable = () => {
    throw new GrpcError(GrpcCode.UNAVAILABLE, "away");
  };
  const unknown = () => {
    throw new GrpcError(GrpcCode.NOT_FOUND, "no lease");
  };

  it("is requested first from the one that the worker pulls from, then from the task's own, then from others, at most three", async () => {
    const s = setup(unavailable, "http://pulled:1");
    for (const url of ["old:1", "recent:1"]) s.orchestrators.at(url);
    expect(await s.orchestrators.locate("r1", "own:1")).toBeUndefined();
    expect(s.asked).toEqual(["pulled:1", "own:1", "recent:1"]);
  });

  it("is the first answer of an orchestrator that knows it; the run does not exist when one reports this", async () => {
    const knows = setup((address) => (address === "own:1" ? located("new:1") : unavailable()), "pulled:1");
    expect(await knows.orchestrators.locate("r1", "own:1")).toBe("new:1");
    const none = setup(unknown, "pulled:1");
    expect(await none.orchestrators.locate("r1", "own:1")).toBeUndefined();
    expect(none.asked).toEqual(["pulled:1"]);
    expect(await setup(() => located("")).orchestrators.locate("r1", "own:1")).toBeUndefined();
  });

  it("is requested once a second for each run", async () => {
    const s = setup(() => located("new:1"));
    await Promise.all([
      s.orchestrators.locate("r1", "own:1"),
      s.orchestrators.locate("r1", "own:1"),
      s.orchestrators.locate("r2", "own:1"),
    ]);
    expect(s.asked).toHaveLength(2);
    s.clock.jump(1_000);
    await s.orchestrators.locate("r1", "own:1");
    expect(s.asked).toHaveLength(3);
  });
});
