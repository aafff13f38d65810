// The functions of the benchmark with Restate's TypeScript SDK.

import { createServer } from "node:http2";
import { createRequire } from "node:module";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import type { Input, Output } from "./closed-loop.ts";
import { type Form, perform, type ShapeName, type StepInput } from "./functions-shapes.ts";

/** What is used of the SDK, which is not a dependency: it is fetched with the server. */
interface Context {
  run<T>(name: string, action: () => T): Promise<T>;
  serviceClient(service: { name: string }): { tally(input: StepInput): Promise<Output> };
}
interface Sdk {
  service(definition: { name: string; handlers: Record<string, (ctx: Context, input: never) => Promise<unknown>> }): { name: string };
  createEndpointHandler(options: { services: unknown[] }): Parameters<typeof createServer>[1] & object;
  RestatePromise: { all<T>(promises: Promise<T>[]): Promise<T[]> };
}

/** Returns the port. The service has the name of the form. */
export async function serveRestate(
  { sdk, shape, form }: { readonly sdk: string; readonly shape: ShapeName; readonly form: Form },
  handler: (input: StepInput) => Output,
): Promise<number> {
  provideWithResolvers();
  const { service, createEndpointHandler, RestatePromise } = createRequire(join(sdk, "package.json"))("@restatedev/restate-sdk") as Sdk;
  const steps = service({ name: "steps", handlers: { tally: async (_ctx, input: StepInput) => handler(input) } });
  const step = (ctx: Context, given: StepInput) =>
    form === "local" ? ctx.run("tally", () => handler(given)) : ctx.serviceClient(steps).tally(given);
  const runs = service({
    name: form,
    handlers: {
      [shape]: (ctx, input: Input) =>
        perform(
          shape,
          input,
          (given) => step(ctx, given),
          (all) => RestatePromise.all(all),
        ),
    },
  });
  const server = createServer(createEndpointHandler({ services: [steps, runs] }));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return (server.address() as AddressInfo).port;
}

/** The SDK calls it; Node has it from version 22 on. */
function provideWithResolvers(): void {
  const promise = Promise as unknown as { withResolvers?: unknown };
  promise.withResolvers ??= function withResolvers() {
    let settle = {};
    const made = new Promise((resolve, reject) => {
      settle = { resolve, reject };
    });
    return { promise: made, ...settle };
  };
}
