// Fetches what is missing of the Conductor peers and prints where they are, as one line of JSON: for the benchmarks, which are compiled
// apart from this package.
import { conductorJar, conductorJava, fetchConductor, javascriptSdk } from "./fetch.ts";

await fetchConductor((line) => process.stderr.write(`${line}\n`));
process.stdout.write(`${JSON.stringify({ jar: conductorJar(), java: conductorJava(), sdk: javascriptSdk() })}\n`);
