// Claim and complete over HTTP on the nodes of a cluster: at the node that owns the data, and through others. Also measures how long there
// is no answer when the owner is killed or stops.
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

/** Where clients are connected: all at once, each with its share of the connections. */
const PLACES = ["the owner", "another node", "two other nodes", "all three nodes"] as const;

interface Round {
  readonly pairs: Readonly<Record<(typeof PLACES)[number], readonly PairsAnswer[]>>;
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
  const at = (...places: readonly Node[]) => {
    const share = (of: number) => Math.ceil(of / places.length);
    return Promise.all(places.map(({ url }) => measure(url, owner.running.pid, share(workflows), share(CONNECTIONS), options)));
  };
  const pairs = {
    "the owner": await at(owner),
    "another node": await at(second),
    "two other nodes": await at(second, third),
    "all three nodes": await at(owner, second, third),
  };
  await owner.running.stop();
  const nodes = [second, third];
  const killed: number[] = [];
  const stopped: number[] = [];
  for (let loss = 0; loss < (options.quick ? 1 : LOSSES); loss++) {
    killed.push(await outage(nodes, store, (node) => node.running.child.kill("SIGKILL")));
    stopped.push(await outage(nodes, store, (node) => void node.running.stop()));
  }
  await Promise.all(nodes.map((node) => node.running.stop()));
  return { pairs, killed, stopped };
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

/** The longest time between two answers of the remaining node, while the owner is replaced by a new node. */
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
  const sum = (answers: readonly PairsAnswer[], pick: (answer: PairsAnswer) => number) =>
    answers.reduce((total, answer) => total + pick(answer), 0);
  // Each client counts all CPU of the owner, so several clients together count it several times.
  const cpu = (answers: readonly PairsAnswer[]) =>
    sum(answers, ({ serverCpuPerPair, pairs }) => serverCpuPerPair * pairs) / answers.length / sum(answers, ({ pairs }) => pairs);
  const rowOf = (place: (typeof PLACES)[number]): Cell[] => [
    place,
    of(({ pairs }) => sum(pairs[place], ({ perSecond }) => perSecond)),
    of(({ pairs }) => cpu(pairs[place])),
    of(({ pairs }) => sum(pairs[place], ({ pairP50 }) => pairP50) / pairs[place].length),
  ];
  const answers = rounds.flatMap(({ pairs }) => PLACES.flatMap((place) => pairs[place]));
  const losses = (ms: number[], what: string, bound: number): Target => ({
    what,
    value: median(ms),
    wanted: "at most",
    bound,
    unit: " ms",
  });
  return {
    tables: [
      {
        title: `Nodes: claim and complete, ${CONNECTIONS} connections`,
        columns: ["clients at", "pairs/s", "owner's CPU us/pair", "p50 ms"],
        rows: PLACES.map(rowOf),
      },
      {
        title: "Nodes: longest time without an answer, ms",
        columns: ["the owner", ...rounds.flatMap(({ killed }) => killed.map((_, at) => String(at + 1)))],
        rows: [
          ["is killed", ...rounds.flatMap(({ killed }) => killed)],
          ["stops", ...rounds.flatMap(({ stopped }) => stopped)],
        ],
      },
    ],
    targets: [
      {
        what: "owner's CPU for a pair through a node, to one over HTTP",
        value: of(({ pairs }) => cpu(pairs["another node"]) / cpu(pairs["the owner"])),
        wanted: "at most",
        bound: 0.6,
      },
      losses(
        rounds.flatMap(({ killed }) => killed),
        "kill -9 to the next answer",
        1_000,
      ),
      losses(
        rounds.flatMap(({ stopped }) => stopped),
        "clean hand-over",
        300,
      ),
    ],
    violations: answers.filter(({ lost }) => lost > 0).map(({ lost }) => `${lost} jobs were lost`),
    checked: sum(answers, ({ pairs }) => pairs),
    rounds,
  };
}
