// Which tests run with a cluster of two nodes as our server. Read by the configuration of the test runner.

const of = (...paths: readonly string[]): string[] => paths.map((path) => `packages/conformance/${path}.test.ts`);

/** The tests of behaviour that only a cluster has. */
export const ofClusters = of("cluster/**/*");

/**
 * Tests that every run repeats with a cluster. For each protocol: the requests whose responses are recorded, or the tests with its fastest
 * workers.
 */
const inEveryRun = of(
  "conductor/differential/differential",
  "stepflow/differential/differential",
  "workflow-graph/differential/differential",
);

/** Tests without our server: peers with peers, our workers with the servers of others, and the tools of these tests. */
const withoutOurServer = [
  ...of("**/fixtures", "**/peers", "**/our-worker", "**/compare", "**/guards"),
  ...of("stepflow/tables", "stepflow/grpcio", "flowkit/group", "flowkit/faults"),
];

export function clusterChapters(all: boolean): { include: string[]; exclude: string[] } {
  return all ? { include: of("**/*"), exclude: withoutOurServer } : { include: [...ofClusters, ...inEveryRun], exclude: [] };
}
