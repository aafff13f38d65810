// The program of a thread of handlers.

import { type MessagePort, parentPort, receiveMessageOnPort, workerData } from "node:worker_threads";
import { refuseWork } from "../../core/load.ts";
import { Handlers } from "./handlers.ts";
import type { HandlerModules, ToHandlers } from "./messages.ts";

const port = parentPort as MessagePort;

refuseWork();
const handlers = new Handlers({
  post: (message) => port.postMessage(message),
  look: () => {
    for (let arrived = receiveMessageOnPort(port); arrived !== undefined; arrived = receiveMessageOnPort(port)) {
      handlers.take(arrived.message as ToHandlers);
    }
  },
});
port.on("message", (message: ToHandlers) => handlers.take(message));
await handlers.load(workerData as HandlerModules);
