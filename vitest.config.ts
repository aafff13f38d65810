// Six projects, so that one command picks what it runs by name: `npm test` takes unit, integration and ui.
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { defineConfig, type Plugin } from "vitest/config";
import { clusterChapters, ofClusters } from "./packages/conformance/src/cluster-chapters.ts";

const PACKAGE = new URL("./packages/longshore/", import.meta.url);
const { exports } = JSON.parse(readFileSync(new URL("package.json", PACKAGE), "utf8")) as { exports: Record<string, { default?: string }> };

// Tests import the package by its public name and get the source, so that no build is needed first.
const alias = Object.entries(exports).flatMap(([name, { default: built }]) => {
  if (built === undefined) return [];
  const source = built.replace("./dist/", "./src/").replace(/\.js$/, ".ts");
  return [{ find: new RegExp(`^longshore${name.slice(1)}$`), replacement: fileURLToPath(new URL(source, PACKAGE)) }];
});

/** LONGSHORE_TEST_ROWS=later: servers in the process of a test get a store that has no row at hand, and commits that end later. */
const later: Plugin = {
  name: "rows-that-are-read-later",
  enforce: "pre",
  resolveId(id, importer = "") {
    const replacement = (name: string) => fileURLToPath(new URL(`./packages/longshore/test/support/${name}`, import.meta.url));
    if (importer.includes("/test/support/later-")) return null;
    if (id.endsWith("/row-store.ts") && importer.endsWith("/src/store/sqlite/store.ts")) return replacement("later-row-store.ts");
    return id.endsWith("/testing/clock.ts") ? replacement("later-clock.ts") : null;
  },
};
/** LONGSHORE_TEST_SERVER=node: a server that a test opens in its own process is a node that does not own the data. */
const throughNode: Plugin = {
  name: "servers-behind-a-node",
  enforce: "pre",
  resolveId(id, importer = "") {
    const isOfTest = importer.includes("/packages/longshore/test/") && !importer.endsWith("/node-server.ts");
    if (!isOfTest || !/\/src\/server\/(?:index|server)\.ts$/.test(id)) return null;
    return fileURLToPath(new URL("./packages/longshore/test/support/node-server.ts", import.meta.url));
  },
};
const plugins = [
  ...(process.env.LONGSHORE_TEST_ROWS === "later" ? [later] : []),
  ...(process.env.LONGSHORE_TEST_SERVER === "node" ? [throughNode] : []),
];

const EVERYWHERE_EXCLUDED = ["**/node_modules/**", "**/dist/**"];
const BUILD = ["./scripts/build-before-tests.ts"];
// Kafka and the like: started only when a test asks for one.
const SERVICES = ["./packages/longshore/test/support/shared-services.ts"];
const LONG_FAULTS = "packages/longshore/test/**/*.faults.test.ts";

// Real processes and sockets are slow to start on a loaded machine; a test that hangs must still end the run.
const PROCESS_TEST_TIMEOUT_MS = 60_000;
const LONG_TEST_TIMEOUT_MS = 600_000;

/** LONGSHORE_CLUSTER_CHAPTERS=all: not only those of every run. */
const CLUSTER = clusterChapters(process.env.LONGSHORE_CLUSTER_CHAPTERS === "all");

const CONFORMANCE = {
  pool: "forks" as const,
  fileParallelism: false,
  testTimeout: LONG_TEST_TIMEOUT_MS,
  hookTimeout: LONG_TEST_TIMEOUT_MS,
  // What other people's servers answer depends on when they are asked; ours is proved by the other projects, which try once.
  retry: 2,
};

export default defineConfig({
  test: {
    pool: "forks",
    // One more than the two cores of the smallest machine: tests of processes wait for much of their time. 80 s instead of 108 s for them.
    maxWorkers: 3,
    reporters: ["dot", "./scripts/plain-reporter.ts"],
    projects: [
      {
        resolve: { alias },
        plugins,
        test: {
          name: "unit",
          pool: "forks",
          // Unit and contract tests share nothing, so they may share a process: 2 s instead of 12 s for 40 files.
          isolate: false,
          include: ["packages/longshore/src/**/*.test.ts", "packages/longshore/test/contract/**/*.test.ts"],
          exclude: EVERYWHERE_EXCLUDED,
          testTimeout: 20_000,
          // PostgreSQL starts in a hook.
          hookTimeout: PROCESS_TEST_TIMEOUT_MS,
        },
      },
      {
        resolve: { alias },
        plugins,
        test: {
          name: "integration",
          globalSetup: [...BUILD, ...SERVICES],
          pool: "forks",
          // As above: whatever must be alone is a process that the test starts. 300 s of processor time instead of 390 s for 140 files.
          isolate: false,
          include: [
            "packages/longshore/test/integration/**/*.test.ts",
            "packages/longshore/test/faults/**/*.test.ts",
            "packages/longshore/test/attacks/**/*.test.ts",
            "bench/**/*.test.ts",
            "scripts/**/*.test.ts",
          ],
          exclude: [...EVERYWHERE_EXCLUDED, LONG_FAULTS],
          testTimeout: PROCESS_TEST_TIMEOUT_MS,
          hookTimeout: PROCESS_TEST_TIMEOUT_MS,
        },
      },
      {
        resolve: { alias },
        test: {
          name: "ui",
          globalSetup: BUILD,
          pool: "forks",
          include: ["packages/dashboard/test/**/*.test.ts"],
          exclude: EVERYWHERE_EXCLUDED,
          testTimeout: PROCESS_TEST_TIMEOUT_MS,
          hookTimeout: PROCESS_TEST_TIMEOUT_MS,
        },
      },
      {
        resolve: { alias },
        test: {
          name: "faults",
          globalSetup: [...BUILD, ...SERVICES],
          pool: "forks",
          fileParallelism: false,
          include: [LONG_FAULTS],
          exclude: EVERYWHERE_EXCLUDED,
          testTimeout: LONG_TEST_TIMEOUT_MS,
          hookTimeout: LONG_TEST_TIMEOUT_MS,
        },
      },
      {
        resolve: { alias },
        test: {
          ...{ name: "conformance", globalSetup: BUILD, ...CONFORMANCE },
          include: ["packages/conformance/**/*.test.ts"],
          exclude: [...EVERYWHERE_EXCLUDED, ...ofClusters],
        },
      },
      {
        resolve: { alias },
        test: {
          ...{ name: "cluster", globalSetup: [...BUILD, "./packages/conformance/src/cluster-database.ts"], ...CONFORMANCE },
          include: CLUSTER.include,
          exclude: [...EVERYWHERE_EXCLUDED, ...CLUSTER.exclude],
        },
      },
    ],
  },
});
