import { natsMissing, TestNats } from "../../../support/nats.ts";
import { dispatch, NatsConsumer } from "../../../support/stepflow-nats.ts";
import { lifecycleSuite } from "./suite.ts";

lifecycleSuite("NATS", {
  backend: "nats",
  skip: natsMissing,
  async open(world) {
    const nats = await TestNats.start();
    await dispatch(world, nats.url);
    return { worker: (queue) => NatsConsumer.open(nats, queue) };
  },
});
