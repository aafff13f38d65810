import { describe, expect, it } from "vitest";
import { canonicalJson, dedupIds, stableHash } from "./hash.ts";

const attempt = { task_id: "T", node_id: "N", attempt_epoch: 1 };

// The reference's results for task "T", node "N".
const vectors: readonly [string, string, string][] = [
  ["an empty payload", dedupIds.payload({}), "ae2679cc6a0f9cd2a7eb68f525c93c46f6510904"],
  ["a payload", dedupIds.payload({ i: 0 }), "44f0f2ddf3bab8c8d176e15c7a221da2a2a43097"],
  [
    "a payload of every kind of value",
    dedupIds.payload({ b: [1, 2.5, true, null, "é"], a: { y: 1, x: '"' } }),
    "e0180c27ad35bf317c5562df2eb109a0a0278ebc",
  ],
  ["a chunk", dedupIds.chunk("u", "b0", 0), "012d18fb6d3a801f0469073cc54870e75aef5e63"],
  ["a start", dedupIds.start(attempt), "822e1c9f5d4ba3fd0b71d0731d9b0a3f4d760ccb"],
  ["a discovery", dedupIds.discover(attempt), "68ff101c9904e3bcb0b16f309decda31b4d37287"],
  ["an acceptance", dedupIds.accepted(attempt, "L"), "be736abb46ea63282297a90af9f6cafb1eea6505"],
  ["a heartbeat", dedupIds.heartbeat(attempt, 89738994 * 20_000 + 19_999, 20_000), "98ad92de6e158ff7c2bf731ab92c453f1b051bbe"],
  ["a good batch", dedupIds.batchOk(attempt, "b0"), "28b6bb795cd52c5ac0395accf9d7ab55429c016c"],
  ["a bad batch", dedupIds.batchFailed(attempt, "b0"), "428d0985ca06460338189f0f6b32386ec0786eb5"],
  ["an end", dedupIds.done(attempt), "a8c76840712ca4707262dd5c9c5ff3ffc5e07f6a"],
  ["a cancellation", dedupIds.cancelled(attempt), "13fed6e4876864ef87258c974a769de4443cb8f8"],
  ["a failure", dedupIds.failed(attempt, "bad_input_args", true), "febf655554cf40e1204b7c29a7b2f773d139cff0"],
  ["a snapshot", dedupIds.snapshot(attempt, "w-1"), "a185fb346cc73b8e3ade2ebacd1c25ead2a54ae6"],
  ["a signal", dedupIds.cancelSignal(attempt, "w-1"), "89902bc12d82d8f4ea9d2d85cb5db1d0e909deb0"],
  ["an announcement", dedupIds.announce("WORKER_ONLINE", "w-1", 1_700_000_000_000), "815546a46a4cbd9336cf9782c097363aab8136de"],
  ["an entry of the outbox", dedupIds.outbox("cmd.echo.v1", "T:N", "D"), "c383d9e6418951beb06d712397775e640b5ebc3f"],
];

describe("ids", () => {
  it.each(vectors)("%s has the id that the reference gives it", (_what, id, expected) => {
    expect(id).toBe(expected);
  });

  it("a batch's id is the hash of its canonical text, for any name", () => {
    const uid = 'a "quoted" \u{1F600}\n';
    expect(dedupIds.batchOk(attempt, uid)).toBe(stableHash({ bok: "T", n: "N", e: 1, uid }));
    expect(dedupIds.batchFailed(attempt, uid)).toBe(stableHash({ bf: "T", n: "N", e: 1, uid }));
  });

  it("two heartbeats in one interval have the same id, and those of two intervals do not", () => {
    const beat = (nowMs: number) => dedupIds.heartbeat(attempt, nowMs, 20_000);
    expect(beat(40_000)).toBe(beat(59_999));
    expect(beat(60_000)).not.toBe(beat(59_999));
  });
});

describe("canonical JSON", () => {
  it("has its keys in the order of their code points", () => {
    // U+FF5E comes before U+1F600, although the first code unit of U+1F600 is smaller.
    expect(canonicalJson({ "\u{1F600}": 1, "\uff5e": 2, b: 3, a: 4, ab: 5, "10": 6, "9": 7 })).toBe(
      '{"10":6,"9":7,"a":4,"ab":5,"b":3,"\uff5e":2,"\u{1F600}":1}',
    );
  });

  it("writes numbers as Python does", () => {
    const cases: [number, string][] = [
      [0, "0"],
      [-0, "0"],
      [2, "2"],
      [-2.5, "-2.5"],
      [0.0001, "0.0001"],
      [0.00001, "1e-05"],
      [0.00012, "0.00012"],
      [1.5e-7, "1.5e-07"],
      [1e-100, "1e-100"],
      [1e21, "1e+21"],
    ];
    for (const [value, text] of cases) expect(canonicalJson(value), String(value)).toBe(text);
  });

  it("drops absent values and escapes as little as JSON allows", () => {
    expect(canonicalJson({ b: undefined as never, a: "é\u007f\u0001\n" })).toBe('{"a":"é\u007f\\u0001\\n"}');
  });
});
