import { describe, expect, it } from "vitest";
import { LongshoreError } from "./errors.ts";
import { createLogger, type LoggerOptions } from "./logger.ts";

function setup(options: Partial<LoggerOptions> = {}) {
  const lines: string[] = [];
  const logger = createLogger({ write: (line) => lines.push(line), clock: { now: () => Date.UTC(2026, 0, 2, 3, 4, 5, 6) }, ...options });
  return { lines, logger, parsed: () => lines.map((line) => JSON.parse(line) as Record<string, unknown>) };
}

describe("the logger", () => {
  it("writes one JSON object on each line, with time, level, message and fields", () => {
    const { logger, parsed } = setup();
    logger.info("started", { port: 4500 });
    expect(parsed()).toEqual([{ time: "2026-01-02T03:04:05.006Z", level: "info", message: "started", port: 4500 }]);
  });

  it("writes text for people, with each message on one line", () => {
    const { logger, lines } = setup({ format: "text" });
    logger.warn("two\nlines", { path: "a b", id: "x1", none: undefined, list: [1] });
    expect(lines).toEqual(['03:04:05.006 warn  two lines path="a b" id=x1 list=[1]']);
    logger.warn("a \u001b[2J", { worker: "\u001b[2Jevil", lane: "\u009b2J" });
    expect(lines[1]).not.toMatch(/\p{Cc}/u);
  });

  it("drops messages below its level, and reports beforehand which levels are on", () => {
    const { logger, lines } = setup({ level: "warn" });
    logger.debug("no");
    logger.info("no");
    logger.error("yes");
    expect(lines).toHaveLength(1);
    expect([logger.enabled("info"), logger.enabled("warn")]).toEqual([false, true]);
    const { logger: silent, lines: nothing } = setup({ level: "silent" });
    silent.error("no");
    expect(nothing).toEqual([]);
  });

  it("adds the fields of a child logger to each of its lines", () => {
    const { logger, parsed } = setup();
    logger.child({ run: "r1" }).child({ step: "a" }).info("m", { step: "b" });
    expect(parsed()[0]).toMatchObject({ run: "r1", step: "b" });
  });

  it("writes errors with code, stack and cause", () => {
    const { logger, parsed } = setup();
    logger.error("failed", { error: new LongshoreError("LONGSHORE_LIMIT", "too many", { cause: new Error("inner") }) });
    expect(parsed()[0]?.error).toMatchObject({
      name: "LongshoreError",
      code: "LONGSHORE_LIMIT",
      message: "too many",
      cause: { message: "inner" },
    });
    expect(parsed()[0]?.error).toHaveProperty("stack", expect.stringContaining("logger.test.ts"));
  });

  it("removes secrets by the name of their field, at any depth", () => {
    const { logger, lines } = setup();
    const headers = { authorization: "Bearer aaaa", cookie: "bbbb", "x-api-key": "cccc", accept: "text/plain" };
    logger.info("m", { headers, list: [{ accessToken: "dddd", github_token: "eeee", tokens: ["ffff"] }], password: "gggg" });
    for (const secret of ["aaaa", "bbbb", "cccc", "dddd", "eeee", "ffff", "gggg"]) expect(lines[0]).not.toContain(secret);
    expect(lines[0]).toContain("text/plain");
  });

  it("removes bearer tokens and known secrets in every place", () => {
    const { logger, lines } = setup({ secrets: ["kV3mQ0rT8xLw2ZpB"] });
    logger.info("called with Authorization: Bearer zzzz.yyyy", { url: "/x/kV3mQ0rT8xLw2ZpB", error: new Error("kV3mQ0rT8xLw2ZpB") });
    expect(lines[0]).not.toMatch(/zzzz|kV3mQ0rT8xLw2ZpB/);
    expect(lines[0]).toContain("[redacted]");
  });

  it("survives cycles, bigints and bytes, and cuts lines that are far too long", () => {
    const { logger, lines } = setup();
    const loop: Record<string, unknown> = { big: 12n, bytes: new Uint8Array(3) };
    loop.self = loop;
    logger.info("m", loop);
    expect(lines[0]).toContain('"big":"12"');
    expect(lines[0]).toContain("[3 bytes]");
    expect(lines[0]).toContain("[deep]");
    logger.info("x".repeat(50_000));
    expect(lines[1]?.length).toBeLessThan(17_000);
  });
});
