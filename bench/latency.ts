// Start latency on an idle server: from the call that starts a run to the first line of the handler.
import { requireCommand } from "./environment.ts";
import type { LatencyAnswer, LatencyRequest } from "./latency-side.ts";
import { measureApart } from "./processes.ts";
import type { Cell, Options, Report, Target } from "./report.ts";
import { median, ratioByRound } from "./stats.ts";

const SIDES = ["ours", "bullmq", "embedded"] as const;
const LABELS = { ours: "ours, long poll over HTTP", bullmq: "BullMQ, Redis over TCP", embedded: "ours, in one process" } as const;
const AT_MOST = 1.25;

type Round = Record<(typeof SIDES)[number], LatencyAnswer>;

export async function latency(options: Options): Promise<Report> {
  requireCommand("redis-server", "redis-server");
  const size = options.quick ? { warmUpSamples: 50, samples: 100 } : { warmUpSamples: 200, samples: 600 };
  const rounds: Round[] = [];
  for (let round = 0; round < options.rounds; round++) {
    const answers: Partial<Record<(typeof SIDES)[number], LatencyAnswer>> = {};
    for (const side of SIDES)
      answers[side] = await measureApart<LatencyAnswer>("latency-side.js", { side, ...size } satisfies LatencyRequest);
    rounds.push(answers as Round);
  }
  return summarise(rounds);
}

function summarise(rounds: readonly Round[]): Report {
  const by = (side: (typeof SIDES)[number], pick: "p50" | "p99") => rounds.map((round) => round[side][pick]);
  const rows: Cell[][] = SIDES.map((side) => {
    const ratios = (["p50", "p99"] as const).map((pick) => ratioByRound(by(side, pick), by("bullmq", pick)).median);
    return [LABELS[side], median(by(side, "p50")), median(by(side, "p99")), ...ratios];
  });
  const targets: Target[] = (["p50", "p99"] as const).map((pick) => ({
    what: `start latency over HTTP beside BullMQ, ${pick}`,
    value: ratioByRound(by("ours", pick), by("bullmq", pick)).median,
    wanted: "at most",
    bound: AT_MOST,
  }));
  const columns = ["side", "p50 ms", "p99 ms", "p50 to BullMQ", "p99 to BullMQ"];
  const violations = rounds.flatMap((round) =>
    SIDES.filter((side) => round[side].lost + round[side].repeated > 0).map(
      (side) => `${LABELS[side]}: ${round[side].lost} lost, ${round[side].repeated} repeated`,
    ),
  );
  const checked = rounds.reduce((sum, round) => sum + SIDES.reduce((samples, side) => samples + round[side].samples, 0), 0);
  return {
    tables: [{ title: "From the start call to the handler, one at a time, medians over rounds", columns, rows }],
    targets,
    violations,
    checked,
    rounds,
  };
}
