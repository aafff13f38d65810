// FlowKit's options of the commands that start a server.

import { resolve } from "node:path";
import type { FlagReading, FlagValues, ServerFlags } from "../protocol.ts";
import type { FlowkitServing } from "./server/options.ts";

/**
 * The variable for FlowKit's database, for a server without the flag. Workers have another variable, because their database may be another
 * one.
 */
const mongoVariable = "LONGSHORE_FLOWKIT_MONGO_URL";

export const flags: ServerFlags<FlowkitServing> = {
  list: [
    { flag: "--flowkit-brokers <list>", description: "Kafka brokers for FlowKit workers (default: the bus of this server)" },
    {
      flag: "--flowkit-mongo <url>",
      description: "MongoDB that FlowKit workers share (default: the store of this server)",
      variable: mongoVariable,
      isSecret: true,
    },
    {
      flag: "--flowkit-mongo-file <file>",
      description: "file with the address of that MongoDB, for addresses with a password",
      conflicts: "flowkitMongo",
    },
    { flag: "--flowkit-config <file>", description: "settings of the FlowKit coordinator, a JSON file" },
  ],
  options(values, around) {
    const { flowkitBrokers: brokers, flowkitConfig: config } = values;
    warnOfTyped(values, around);
    const mongo = mongoOf(values, around);
    const flowkit = {
      ...(typeof brokers === "string" ? { brokers } : {}),
      ...(mongo === undefined ? {} : { mongo }),
      ...(typeof config === "string" ? { config: resolve(config) } : {}),
    };
    return Object.keys(flowkit).length === 0 ? {} : { flowkit };
  },
  secretFiles: ({ flowkitMongoFile: file }) => (typeof file === "string" ? [file] : []),
};

/** The address of the database: itself, or in a file. */
function mongoOf({ flowkitMongo, flowkitMongoFile }: FlagValues, { read, failure }: FlagReading): string | undefined {
  if (typeof flowkitMongo === "string") return flowkitMongo;
  if (typeof flowkitMongoFile !== "string") return undefined;
  const url = read("--flowkit-mongo-file", flowkitMongoFile).trim();
  if (url === "") throw failure(`the file of --flowkit-mongo-file, ${flowkitMongoFile}, is empty, expected the address of a MongoDB.`);
  return url;
}

/** Warns of a password in an argument, because other users can read it. */
function warnOfTyped({ flowkitMongo }: FlagValues, { warn, isTyped }: FlagReading): void {
  if (typeof flowkitMongo !== "string" || !isTyped("flowkitMongo") || !hasPassword(flowkitMongo)) return;
  const where = "can be read by every user of this machine, in the list of processes";
  warn(`The password in --flowkit-mongo ${where}. Give the address in a file with --flowkit-mongo-file, or in ${mongoVariable}, instead.`);
}

/** Whether a MongoDB connection string contains a password. */
function hasPassword(url: string): boolean {
  const authority = url.slice(url.indexOf("://") + 3).split("/", 1)[0] as string;
  return authority.slice(0, Math.max(0, authority.lastIndexOf("@"))).includes(":");
}
