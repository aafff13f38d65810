import { describe, expect, it } from "vitest";
import type { JsonObject } from "../../../core/json/json.ts";
import { adapterNames, argDefaults, checkAdapterArgs, pullAdapter, rechunkAdapter } from "./adapter-args.ts";

function why(name: string, args: JsonObject, strict = false): string {
  const checked = checkAdapterArgs(name, args, { ...argDefaults, strict });
  if (checked === undefined) return "unknown adapter";
  return checked.ok ? "fine" : checked.why;
}

describe("arguments of adapters", () => {
  it("[F-PULL-02] a list of sources and a pause are accepted, and the worker's settings replace absent values", () => {
    expect(checkAdapterArgs(pullAdapter, { from_nodes: ["u", "v"], poll_ms: 50 }, argDefaults)).toEqual({
      ok: true,
      args: { fromNodes: ["u", "v"], pollMs: 50, backoffMaxMs: 4_000, eofOnTaskDone: true },
    });
    expect(checkAdapterArgs(pullAdapter, { from_nodes: ["u"], backoff_max_ms: 9, eof_on_task_done: false }, argDefaults)).toEqual({
      ok: true,
      args: { fromNodes: ["u"], pollMs: 300, backoffMaxMs: 9, eofOnTaskDone: false },
    });
  });

  it("[F-ADAPT-07] from_node is normalised to a list of one", () => {
    const one = { ok: true, args: { fromNodes: ["u"] } };
    expect(checkAdapterArgs(pullAdapter, { from_node: "u" }, argDefaults)).toMatchObject(one);
    expect(checkAdapterArgs(pullAdapter, { from_node: "u", from_nodes: [] }, argDefaults)).toMatchObject(one);
    expect(checkAdapterArgs(pullAdapter, { from_node: "v", from_nodes: ["u", "u"] }, argDefaults)).toMatchObject(one);
  });

  it("[F-RECH-02] rechunking has a size and an optional key of a list", () => {
    const args = { from_node: "u", size: 3, poll_ms: 25, meta_list_key: "skus" };
    expect(checkAdapterArgs(rechunkAdapter, args, argDefaults)).toMatchObject({
      ok: true,
      args: { fromNodes: ["u"], size: 3, pollMs: 25, metaListKey: "skus" },
    });
    expect(checkAdapterArgs(rechunkAdapter, { from_node: "u", size: 3 }, argDefaults)).toMatchObject({
      ok: true,
      args: { metaListKey: null },
    });
  });

  it("[A10] missing sources, extra arguments and invalid pauses are refused by name", () => {
    expect(why(pullAdapter, {})).toBe("missing 'from_nodes' (at least one node id required)");
    expect(why(pullAdapter, { from_nodes: "u" })).toBe(`'from_nodes' is "u", expected a list of node ids`);
    expect(why(pullAdapter, { from_nodes: ["u", 1] })).toBe("'from_nodes' has 1 in it, expected node ids");
    expect(why(pullAdapter, { from_node: 7 })).toBe("'from_node' is 7, expected a node id");
    expect(why(pullAdapter, { from_node: "u", bogus: 1 })).toBe(
      "unknown argument 'bogus', expected from_nodes, from_node, poll_ms, eof_on_task_done, backoff_max_ms",
    );
    expect(why(pullAdapter, { from_node: "u", poll_ms: "abc" })).toBe(`'poll_ms' is "abc", expected milliseconds`);
    expect(why(pullAdapter, { from_node: "u", poll_ms: 0 })).toBe("'poll_ms' is 0, expected milliseconds");
    expect(why(pullAdapter, { from_node: "u", eof_on_task_done: "no" })).toBe(`'eof_on_task_done' is "no", expected true or false`);
    expect(checkAdapterArgs(pullAdapter, [], argDefaults)).toEqual({ ok: false, why: "input_args is [], expected an object" });
  });

  it("[A11] a size must be given, and must not be a boolean, a fraction or a text", () => {
    for (const size of [true, false, 0, -1, 1.5, "2", null]) {
      expect(why(rechunkAdapter, { from_node: "u", size })).toBe("missing or invalid 'size' (positive int required)");
    }
    expect(why(rechunkAdapter, { from_node: "u" })).toBe("missing or invalid 'size' (positive int required)");
  });

  it("the key of a list must be a text, and strict installations require it", () => {
    expect(why(rechunkAdapter, { from_node: "u", size: 2, meta_list_key: 7 })).toBe("'meta_list_key' is 7, expected a text");
    expect(why(rechunkAdapter, { from_node: "u", size: 2 }, true)).toBe("missing 'meta_list_key' (required by strict_input_adapters)");
    expect(why(rechunkAdapter, { from_node: "u", size: 2, meta_list_key: "skus" }, true)).toBe("fine");
  });

  it("only the known adapters are accepted, by name", () => {
    for (const name of adapterNames) expect(why(name, { from_node: "u", ...(name === rechunkAdapter ? { size: 1 } : {}) })).toBe("fine");
    expect(why("pull.from_nowhere", {})).toBe("unknown adapter");
  });
});
