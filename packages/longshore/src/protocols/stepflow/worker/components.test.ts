import { describe, expect, it } from "vitest";
import { z } from "zod";
import { type Task, task } from "../../../core/task.ts";
import { Components } from "./components.ts";

function setup(...tasks: Task[]) {
  return new Components(new Map(tasks.map((each) => [each.name, each])));
}

const greet = task("greet", () => 1);
const nested = task("shop/greet", () => 2);
const core = task("core", () => 3, { path: "/core/{*path}" });
const language = task("language", () => 4, { path: "/lang/{code}" });

describe("components", () => {
  it.each([
    ["greet", greet, {}],
    ["/greet", greet, {}],
    ["/any/prefix/greet", greet, {}],
    ["shop/greet", nested, {}],
    ["/shop/greet", nested, {}],
    ["/my/shop/greet", nested, {}],
    ["core", core, {}],
    ["/core/a/b", core, { path: "a/b" }],
    ["/python/core/a", core, { path: "a" }],
    ["/lang/de", language, { code: "de" }],
  ])("are found by id, by path and by a path with a route's prefix: %s", (name, found, pathParams) => {
    expect(setup(greet, nested, core, language).find(name)).toEqual({ task: found, pathParams });
  });

  it("[S-HTTP-33] are found when a route removes their own prefix, except when two components match", () => {
    const process = task("process", () => 5, { path: "/my_worker/process_data" });
    expect(setup(greet, process).find("/process_data")).toEqual({ task: process, pathParams: {} });
    expect(setup(greet, process).find("/my_worker/process_data")?.task).toBe(process);
    const other = task("other", () => 6, { path: "/other_worker/process_data" });
    expect(setup(process, other).find("/process_data")).toBeUndefined();
    expect(setup(process, other).find("/x/other_worker/process_data")?.task).toBe(other);
  });

  it("are tried from the most specific path to the least specific", () => {
    const rest = task("rest", () => 7, { path: "/files/{*all}" });
    const kind = task("kind", () => 8, { path: "/files/{kind}/{*rest}" });
    const one = task("one", () => 9, { path: "/files/{kind}" });
    const components = setup(rest, kind, one);
    expect(components.find("/files/text/a/b")).toEqual({ task: kind, pathParams: { kind: "text", rest: "a/b" } });
    expect(components.find("/files/text")).toEqual({ task: one, pathParams: { kind: "text" } });
  });

  it("must have different paths", () => {
    expect(() =>
      setup(
        task("a", () => 1, { path: "/greet" }),
        greet,
      ),
    ).toThrow(/^Tasks "a" and "greet" are both found at \/greet/);
  });

  it.each(["", "/", "greets", "/greet/more", "/lang/de/at", "/lang"])("are not found by %j", (name) => {
    expect(setup(greet, nested, core, language).find(name)).toBeUndefined();
  });

  it("are described with path and schemas, once", () => {
    const input = z.object({ name: z.string() });
    const components = setup(
      task("greet", () => 1, { input, description: "Says hello." }),
      core,
    );
    expect(components.descriptions).toMatchObject([
      { name: "greet", path: "/greet", description: "Says hello.", inputSchema: { type: "object", required: ["name"] } },
      { name: "core", path: "/core/{*path}" },
    ]);
    expect(components.descriptions).toBe(components.descriptions);
  });
});
