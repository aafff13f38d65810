// Fetches the Conductor peers that are missing, and prints the paths of all as one line of JSON. The benchmarks run this program, because
// they are compiled separately from this package.
import { conductorJar, conductorJava, fetchConductor, javascriptSdk } from "./fetch.ts";

await fetchConductor((line) => process.stderr.write(`${line}\n`));
process.stdout.write(`${JSON.stringify({ jar: conductorJar(), java: conductorJava(), sdk: javascriptSdk() })}\n`);
