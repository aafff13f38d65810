import { lifecycleSuite } from "./suite.ts";

lifecycleSuite("gRPC", {
  backend: "grpc",
  open: async ({ pull }) => ({
    worker: async (queue, workerId) => {
      const stream = pull(queue, workerId);
      // The first assignment requests its components. From then on the worker is known.
      await stream.nextOfAny();
      return { next: () => stream.next(), waiting: () => stream.received.filter(({ execute }) => execute !== undefined).length };
    },
  }),
});
