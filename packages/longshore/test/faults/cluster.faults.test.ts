// Long rounds of the fault test on a cluster: its nodes and workers are killed, frozen, ended and disconnected, over every protocol.

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { javaMissing } from "../support/java-service.ts";
import { natsMissing, TestNats } from "../support/nats.ts";
import { postgresMissing, startMsMax, TestPostgres } from "../support/postgres.ts";
import { faultSeed, inArena } from "./arena.ts";
import { playFlowkitRound } from "./flowkit-round.ts";
import { playRound } from "./round.ts";
import { STEPFLOW_TERM_MS, stepflowWire } from "./stepflow-wire.ts";

const ON_NODES = { "kill-server": 15, "end-server": 4, "stop-server": 4 };
const ON_OTHERS = { "kill-worker": 4, "stop-worker": 2, "silence-link": 2, "cut-link": 6, "cancel-run": 8 };

if (postgresMissing !== undefined) it("a cluster keeps its promises", (context) => context.skip(`needs ${postgresMissing}`));
else
  describe("a cluster in a long round", () => {
    let postgres: TestPostgres;
    beforeAll(async () => {
      postgres = await TestPostgres.start();
    }, startMsMax);
    afterAll(() => postgres.remove(), startMsMax);

    it("keeps every promise over workflow-graph", async () => {
      await inArena(
        async (arena) => {
          const counts = { ...ON_NODES, ...ON_OTHERS };
          const { final } = await playRound(arena, { seed: faultSeed(), durationMs: 60_000, runs: 150, workers: 4, counts });
          expect(final.runs).toHaveLength(150);
        },
        { cluster: { postgres, nodes: 3 } },
      );
    });

    it.each(["gRPC", "NATS"])("keeps every promise over Stepflow's queues by %s", async (way) => {
      if (way === "NATS" && natsMissing) throw new Error(`needs ${natsMissing}`);
      const nats = way === "NATS" ? await TestNats.start() : undefined;
      await inArena(
        async (arena) => {
          const counts = { "kill-server": 6, "end-server": 2, "stop-server": 1, "kill-worker": 3, "cut-link": 4, "cancel-run": 4 };
          const round = { seed: faultSeed(), durationMs: 40_000, runs: 80, workers: 3, counts, termMs: STEPFLOW_TERM_MS };
          const { final } = await playRound(arena, round);
          expect(final.runs).toHaveLength(80);
        },
        { cluster: { postgres, nodes: 2 }, wire: stepflowWire(nats?.url) },
      );
    });

    it.each(["the nodes' own bus", "Kafka"])("loses no batch of FlowKit on %s, and counts none twice", async (bus) => {
      if (bus === "Kafka" && javaMissing) throw new Error(`needs ${javaMissing}`);
      const counts = { "kill-server": 5, "end-server": 2, "stop-server": 1, "kill-worker": 5 };
      const round = { seed: faultSeed(), durationMs: 45_000, graphs: 15, workers: 4, shape: { batches: 20, ms: 10 }, counts };
      const verdict = await playFlowkitRound({ ...round, store: "own", ownBus: bus !== "Kafka", cluster: { postgres, nodes: 2 } });
      expect(verdict.graphs).toBe(15);
    });
  });
