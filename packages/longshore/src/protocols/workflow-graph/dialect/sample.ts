// The built-in sample: eight jobs of a pipeline, each an `echo` and a short sleep. Any worker with a shell can run it.

import { encodeSource, type GraphJob, type GraphSource, plainJob } from "./source.ts";

export const sampleId = "ci-1";

const sampleGraph: GraphSource = {
  name: "ci.yml",
  trigger: "on: push",
  jobs: [
    job("unit-tests", "Unit Tests", "echo 'Running unit tests' && sleep 2", []),
    job("lint", "Lint", "echo 'Running linter' && sleep 1", []),
    job("typecheck", "Typecheck", "echo 'Running typecheck' && sleep 2", []),
    job("build", "Build", "echo 'Building project' && sleep 3", ["unit-tests", "lint", "typecheck"]),
    job("deploy-db", "Deploy DB Migrations", "echo 'Deploying DB migrations' && sleep 1", ["build"]),
    job("e2e-tests", "E2E Tests", "echo 'Running E2E tests' && sleep 5", ["build"]),
    job("deploy-preview", "Deploy Preview", "echo 'Deploying preview' && sleep 1", ["build"]),
    job("deploy-web", "Deploy Web", "echo 'Deploying to production' && sleep 3", ["deploy-db"]),
  ],
};

export const sampleSource = encodeSource(sampleGraph);

function job(id: string, name: string, command: string, dependsOn: string[]): GraphJob {
  return { ...plainJob(id, command), name, depends_on: dependsOn };
}
