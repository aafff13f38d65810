// The worker of the functions benchmark for a server elsewhere: ours, or the service that Restate calls. It prints a line of JSON when it
// is ready. At its end it prints another one with what it has counted.
import { type Point, StepWitness } from "./functions-shapes.ts";

export interface WorkerRequest extends Point {
  readonly by: "ours" | "restate";
  /** Ours: the server. */
  readonly url: string;
  /** Restate: the folder in which its SDK is installed. */
  readonly sdk: string;
}

const request = JSON.parse(process.argv[2] ?? "null") as WorkerRequest;
const witness = new StepWitness(request.shape);
const say = (line: object) => process.stdout.write(`${JSON.stringify(line)}\n`);

if (request.by === "ours") {
  const { workOn } = await import("./our-functions.ts");
  await workOn(request.url, request, witness.handler);
  say({ ready: true });
} else {
  const { serveRestate } = await import("./restate-service.ts");
  say({ ready: true, port: await serveRestate(request, witness.handler) });
}

process.once("SIGTERM", () => {
  process.stdout.write(`${JSON.stringify({ executed: witness.executed, repeated: witness.repeated })}\n`, () => process.exit(0));
});
