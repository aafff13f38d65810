// Claim and complete over HTTP on the nodes of a cluster: at the node that owns the data, and through others; and how long there is no answer when
// the owner is killed, or stops.
import { withFolder } from "./environment.ts";
import { type HttpConnection, openConnection } from "./http-connection.ts";
import { command } from "./ours.ts";
import type { PairsAnswer, PairsRequest } from "./pairs-client.ts";
import { startPostgres } from "./postgres-server.ts";
import { measureApart, type Running, start } from "./processes.ts";
import type { Cell, Options, Report, Target } from "./report.ts";
import { median } from "./stats.ts";

const JOBS = 500;
const WORKFLOWS = 40;
const CONNECTIONS = 100;
/** How often the owner is lost in a round, in each way. */
const LOSSES = 3;
const ASK_PAUSE_MS = 5;
const OUTAGE_LIMIT_MS = 20_000;

interface Node {
  readonly url: string;
  readonly running: Running;
}

interface Round {
  /** Pairs at the owner itself, through one other node, and through two others at once. */
  readonly own: PairsAnswer;
  readonly through: PairsAnswer;
  readonly throughTwo: readonly PairsAnswer[];
  readonly killed: readonly number[];
  readonly stopped: readonly number[];
}

export async function cluster(options: Options): Promise<Report> {
  const rounds: Round[] = [];
  for (let round = 0; round < options.rounds; round++) {
    await withFolder(async (folder) => {
      const postgres = await startPostgres(folder);
      try {
        rounds.push(await measureRound(await postgres.fresh(), options));
      } finally {
        await postgres.stop();
      }
    });
  }
  return summarise(rounds);
}

async function measureRound(store: string, options: Options): Promise<Round> {
  const [owner, second, third] = [await startNode(store), await startNode(store), await startNode(store)];
  const workflows = Math.ceil(WORKFLOWS / (options.quick ? 8 : 1));
  const pairs = (url: string, share = 1) => measure(url, owner.running.pid, Math.ceil(workflows / share), CONNECTIONS / share, options);
  const own = await pairs(owner.url);
  const through = await pairs(second.url);
  const throughTwo = await Promise.all([pairs(second.url, 2), pairs(third.url, 2)]);
  await owner.running.stop();
  const nodes = [second, third];
  const killed: number[] = [];
  const stopped: number[] = [];
  for (let loss = 0; loss < (options.quick ? 1 : LOSSES); loss++) {
    killed.push(await outage(nodes, store, (node) => node.running.child.kill("SIGKILL")));
    stopped.push(await outage(nodes, store, (node) => void node.running.stop()));
  }
  await Promise.all(nodes.map((node) => node.running.stop()));
  return { own, through, throughTwo, killed, stopped };
}

async function startNode(store: string): Promise<Node> {
  const running = start(process.execPath, [command, "start", "--port", "0", "--json"], { env: { LONGSHORE_STORE: store } });
  const line = await running.line((text) => text.startsWith("{") && text.includes('"ready"'));
  return { url: (JSON.parse(line) as { url: string }).url, running };
}

function measure(url: string, serverPid: number, workflows: number, connections: number, { client }: Options): Promise<PairsAnswer> {
  const load = {
    connections,
    workflows,
    jobs: JOBS,
    warmUpPairs: Math.min(2_000, (workflows * JOBS) / 2),
    shape: "independent",
    client,
  } as const;
  return measureApart<PairsAnswer>("pairs-client.js", { url, serverPid, ...load } satisfies PairsRequest);
}

/** The longest time between two answers of the node that stays, while the owner goes. The owner is replaced by a new node afterwards. */
async function outage(nodes: Node[], store: string, lose: (owner: Node) => void): Promise<number> {
  let owner = await ownerOf(nodes);
  for (const begun = performance.now(); owner === undefined; owner = await ownerOf(nodes)) {
    if (performance.now() - begun > OUTAGE_LIMIT_MS) throw new Error("no node took over");
    await new Promise((resolve) => setTimeout(resolve, ASK_PAUSE_MS));
  }
  const other = nodes.find((node) => node !== owner) as Node;
  const connection = await openConnection(other.url, "undici");
  try {
    await write(connection);
    lose(owner);
    let longest = 0;
    const begun = performance.now();
    for (let answered = begun; performance.now() - begun < OUTAGE_LIMIT_MS; ) {
      await write(connection);
      const now = performance.now();
      longest = Math.max(longest, now - answered);
      answered = now;
      if ((await ownerOf([other])) === other) break;
      await new Promise((resolve) => setTimeout(resolve, ASK_PAUSE_MS));
    }
    return longest;
  } finally {
    connection.close();
    nodes.splice(nodes.indexOf(owner as Node), 1, await startNode(store));
  }
}

/** A small durable request. */
async function write(connection: HttpConnection): Promise<void> {
  const { status } = await connection.request("POST", "/api/workers/register", JSON.stringify({ worker_id: "asks", labels: [] }));
  if (status >= 300) throw new Error(`a request was answered with ${status}`);
}

async function ownerOf(nodes: readonly Node[]): Promise<Node | undefined> {
  for (const node of nodes) {
    const metrics = await (await fetch(`${node.url}/metrics`)).text();
    if (metrics.includes('longshore_node_state{state="owner"} 1')) return node;
  }
  return undefined;
}

function summarise(rounds: readonly Round[]): Report {
  const of = (pick: (round: Round) => number) => median(rounds.map(pick));
  const both = (round: Round, pick: (answer: PairsAnswer) => number) => round.throughTwo.reduce((sum, answer) => sum + pick(answer), 0);
  const row = (label: string, rate: (round: Round) => number, cpu: (round: Round) => number, p50: (round: Round) => number): Cell[] => [
    label,
    of(rate),
    of(cpu),
    of(p50),
  ];
  const answers = rounds.flatMap(({ own, through, throughTwo }) => [own, through, ...throughTwo]);
  const ratio = of(({ own, through }) => through.serverCpuPerPair / own.serverCpuPerPair);
  const targets: Target[] = [
    { what: "owner's CPU for a pair through a node, to one over HTTP", value: ratio, wanted: "at most", bound: 0.6 },
    {
      what: "kill -9 to the next answer",
      value: median(rounds.flatMap(({ killed }) => killed)),
      wanted: "at most",
      bound: 1_000,
      unit: " ms",
    },
    { what: "clean hand-over", value: median(rounds.flatMap(({ stopped }) => stopped)), wanted: "at most", bound: 300, unit: " ms" },
  ];
  return {
    tables: [
      {
        title: `claim and complete, ${CONNECTIONS} connections`,
        columns: ["clients at", "pairs/s", "owner's CPU us/pair", "p50 ms"],
        rows: [
          row(
            "the owner",
            (round) => round.own.perSecond,
            (round) => round.own.serverCpuPerPair,
            (round) => round.own.pairP50,
          ),
          row(
            "another node",
            (round) => round.through.perSecond,
            (round) => round.through.serverCpuPerPair,
            (round) => round.through.pairP50,
          ),
          row(
            "two other nodes",
            (round) => both(round, ({ perSecond }) => perSecond),
            // Each client reads all CPU of the owner, so both together count it twice.
            (round) => both(round, ({ serverCpuPerPair, pairs }) => serverCpuPerPair * pairs) / 2 / both(round, ({ pairs }) => pairs),
            (round) => both(round, ({ pairP50 }) => pairP50) / 2,
          ),
        ],
      },
      {
        title: "longest time without an answer, ms",
        columns: ["the owner", ...rounds.flatMap(({ killed }) => killed.map((_, at) => String(at + 1)))],
        rows: [
          ["is killed", ...rounds.flatMap(({ killed }) => killed)],
          ["stops", ...rounds.flatMap(({ stopped }) => stopped)],
        ],
      },
    ],
    targets,
    violations: answers.filter(({ lost }) => lost > 0).map(({ lost }) => `${lost} jobs were lost`),
    checked: answers.reduce((sum, { pairs }) => sum + pairs, 0),
    rounds,
  };
}
