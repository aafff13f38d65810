// Fetches the Stepflow peers that are missing, and prints the paths of all as one line of JSON. The benchmarks run this program, because they
// are compiled separately from this package.
import { fetchStepflow, orchestratorProgram, pythonWithSdk, releaseNames } from "./fetch.ts";

await fetchStepflow((line) => process.stderr.write(`${line}\n`));
const places = releaseNames.map((release) => [release, { orchestrator: orchestratorProgram(release), python: pythonWithSdk(release) }]);
process.stdout.write(`${JSON.stringify(Object.fromEntries(places))}\n`);
