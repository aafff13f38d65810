// Fetches what is missing of the Stepflow peers and prints where they are, as one line of JSON: for the benchmarks, which are compiled
// apart from this package.
import { fetchStepflow, orchestratorProgram, pythonWithSdk, releaseNames } from "./fetch.ts";

await fetchStepflow((line) => process.stderr.write(`${line}\n`));
const places = releaseNames.map((release) => [release, { orchestrator: orchestratorProgram(release), python: pythonWithSdk(release) }]);
process.stdout.write(`${JSON.stringify(Object.fromEntries(places))}\n`);
